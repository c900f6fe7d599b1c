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

// proofAnnotation names results of `admitkit verify -o json=FILE` that prove webhooks to be safe to call again:
// "sidecar.example.com=proof.json; ...". Files are in the folder of the configuration's file, or below it.
const proofAnnotation = "lint.admitkit.dev/proof"

// mostProof is the largest that is read, in bytes.
const mostProof = 16 << 20

// proven returns the names of webhooks that are. A proof that is none is told of, and the finding stays.
func proven(s *screen.Screen, all []*objects.Object) []string {
	var names []string
	for _, o := range all {
		for _, entry := range proofsOf(o) {
			webhook, file, _ := strings.Cut(entry, "=")
			webhook, file = strings.TrimSpace(webhook), strings.TrimSpace(file)
			exceptions, err := provesBeside(o.File, file, webhook)
			if err != nil {
				s.Note("%s: no proof that %s is safe to call again: %s", o.Where(), webhook, err)
				continue
			}
			if exceptions != nil {
				s.Note("%s: the proof that %s is safe to call again leaves out: %s", o.Where(), webhook, strings.Join(exceptions, "; "))
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
		return nil // the latter is found as AK101
	}
	var all []string
	for _, entry := range strings.FieldsFunc(head.Metadata.Annotations[proofAnnotation], func(r rune) bool { return r == ';' || r == '\n' }) {
		if strings.TrimSpace(entry) != "" {
			all = append(all, entry)
		}
	}
	return all
}

// provesBeside reads the results that a configuration names. Whoever wrote the configuration chose the name: it
// reaches nothing but files below its own folder.
func provesBeside(configuration, file, webhook string) ([]string, error) {
	if configuration == "" || configuration == "-" {
		return nil, errors.New("proofs are read beside files only, not for a cluster or standard input")
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
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, mostProof+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostProof {
		return nil, fmt.Errorf("%s has more than %d MiB", file, mostProof>>20)
	}
	exceptions, err := proves(text, webhook)
	if err != nil {
		return nil, fmt.Errorf("%s %w", file, err)
	}
	return exceptions, nil
}

// needed are the laws that a webhook has to keep to be called again on what it and others made of an object.
var needed = []idempotence.Law{idempotence.L1, idempotence.L2, idempotence.L4a, idempotence.L4b}

// proves says why results are no proof, or what they leave out.
func proves(text []byte, webhook string) (exceptions []string, err error) {
	var report idempotence.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	switch {
	case !slices.Contains(report.Webhooks, webhook):
		return nil, fmt.Errorf("is about %s", strings.Join(report.Webhooks, ", "))
	case report.Incomplete != "":
		return nil, fmt.Errorf("is incomplete: %s", report.Incomplete)
	case !report.OK():
		return nil, errors.New("has laws that are broken")
	case len(report.Laws) == 0:
		return nil, errors.New("has no law that holds")
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
				return nil, fmt.Errorf("does not show that %s holds for %s: %s", law, kind, why)
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

// unproven says why a law is not shown to hold. L4a and L4b may find nothing to do: a webhook that adds nothing
// that others could edit is safe from their edits.
func unproven(laws []idempotence.LawResult, law idempotence.Law, kind string) string {
	i := slices.IndexFunc(laws, func(l idempotence.LawResult) bool { return l.Law == law && l.Kind == kind })
	if i < 0 {
		return "it was not tried"
	}
	edits := law == idempotence.L4a || law == idempotence.L4b
	switch l := laws[i]; {
	case l.Verdict == idempotence.Holds && l.Cases > 0:
		return ""
	case l.Verdict == idempotence.NotApplicable && edits && l.Reason != "" && !strings.HasPrefix(l.Reason, "left out"):
		return ""
	case l.Verdict == idempotence.Holds:
		return "it was tried with no case"
	case l.Reason != "":
		return l.Reason
	default:
		return string(l.Verdict)
	}
}
