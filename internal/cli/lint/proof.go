// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// proofAnnotation is the annotation that names files with results of "admitkit verify -o json=FILE", such as
// "sidecar.example.com=proof.json; ...". The results prove that webhooks are safe to call again. The files are in the
// folder of the configuration's file, or below it.
const proofAnnotation = "lint.admitkit.dev/proof"

// maxProofSize is the size limit of a proof file, in bytes.
const maxProofSize = 16 << 20

// proven returns the names of webhooks with a valid proof. It prints a note about each invalid proof.
func proven(s *screen.Screen, all []*objects.Object) []string {
	var names []string
	for _, o := range all {
		for _, entry := range proofsOf(o) {
			webhook, file, _ := strings.Cut(entry, "=")
			webhook, file = strings.TrimSpace(webhook), strings.TrimSpace(file)
			exceptions, err := provesBeside(o.File, file, webhook)
			if err != nil {
				s.Note("%s: the proof for %s is not valid: %s", o.Where(), webhook, err)
				continue
			}
			if exceptions != nil {
				s.Note("%s: the proof for %s has exceptions: %s", o.Where(), webhook, strings.Join(exceptions, "; "))
			}
			names = append(names, webhook)
		}
	}
	return names
}

func proofsOf(o *objects.Object) []string {
	var head struct {
		Metadata struct{ Annotations map[string]string }
	}
	if !isConfiguration(o) || json.Unmarshal(o.JSON, &head) != nil {
		return nil // AK101 reports annotations of a wrong type
	}
	var all []string
	for _, entry := range strings.FieldsFunc(head.Metadata.Annotations[proofAnnotation], func(r rune) bool { return r == ';' || r == '\n' }) {
		if strings.TrimSpace(entry) != "" {
			all = append(all, entry)
		}
	}
	return all
}

// provesBeside reads the proof file that a configuration names, and returns the exceptions of the proof. The author of
// the configuration may not be trusted, so the file must be in the folder of the configuration or below it.
func provesBeside(configuration, file, webhook string) ([]string, error) {
	if configuration == "" || configuration == "-" {
		return nil, errors.New("lint reads proofs only for configurations in files, not from a cluster or standard input")
	}
	if !filepath.IsLocal(file) {
		return nil, fmt.Errorf("%q is not below the folder of the configuration", file)
	}
	root, err := os.OpenRoot(filepath.Dir(configuration))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	info, err := root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxProofSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProofSize {
		return nil, fmt.Errorf("%s is larger than %d MiB", file, maxProofSize>>20)
	}
	exceptions, err := proves(text, webhook)
	if err != nil {
		return nil, fmt.Errorf("%s %w", file, err)
	}
	return exceptions, nil
}

// needed lists the laws that a webhook must pass to be safe to call again.
var needed = []idempotence.Law{idempotence.L1, idempotence.L2, idempotence.L4a, idempotence.L4b}

// proves returns an error if the results of admitkit verify do not prove that a webhook is safe to call again.
// Otherwise it returns the exceptions of the proof.
func proves(text []byte, webhook string) (exceptions []string, err error) {
	var report idempotence.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	switch {
	case !slices.Contains(report.Webhooks, webhook):
		return nil, fmt.Errorf("covers only %s", strings.Join(report.Webhooks, ", "))
	case len(report.Incomplete) > 0:
		return nil, fmt.Errorf("is incomplete: %s", report.Texts(report.Incomplete))
	case !report.OK():
		return nil, errors.New("has a law that fails")
	case len(report.Laws) == 0:
		return nil, errors.New("has no law that passes")
	}
	kinds := map[string]bool{}
	for _, l := range report.Laws {
		kinds[l.Kind] = true
	}
	for _, kind := range report.Kinds {
		kinds[kind] = true
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, law := range needed {
			if why := unproven(report.Laws, law, kind); why != "" {
				return nil, fmt.Errorf("does not show that %s passes for %s: %s", law.Title(), kind, why)
			}
		}
	}
	for _, e := range report.Exceptions {
		if e.Law == "" || slices.Contains(needed, e.Law) {
			exceptions = append(exceptions, fmt.Sprintf("%s (%s)", e.Path, e.Reason))
		}
	}
	return exceptions, nil
}

// unproven returns why the results do not prove a law, or "". L4a and L4b may be not applicable, if the webhook adds
// nothing that could be edited.
func unproven(laws []idempotence.LawResult, law idempotence.Law, kind string) string {
	i := slices.IndexFunc(laws, func(l idempotence.LawResult) bool { return l.Law == law && l.Kind == kind })
	if i < 0 {
		return "the law was not tested"
	}
	edits := law == idempotence.L4a || law == idempotence.L4b
	switch l := laws[i]; {
	case l.Verdict == idempotence.Passes && l.Cases > 0:
		return ""
	case l.Verdict == idempotence.NotApplicable && edits && l.Reason != nil && l.Reason.Code != idempotence.ReasonLawExcluded:
		return ""
	case l.Verdict == idempotence.Passes:
		return "no case was tested"
	case l.Reason != nil:
		return l.Reason.String()
	default:
		return string(l.Verdict)
	}
}
