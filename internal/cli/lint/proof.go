// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/pkg/idempotence"
)

// proofAnnotation names results of `admitkit verify -o json=FILE` that prove webhooks to be safe to call again:
// "sidecar.example.com=proof.json; ...". Files are beside that of the configuration.
const proofAnnotation = "lint.admitkit.dev/proof"

// proven returns the names of webhooks that are. A proof that is none is told of, and the finding stays.
func proven(s *screen.Screen, all []*objects.Object) []string {
	var names []string
	for _, o := range all {
		if !isConfiguration(o) {
			continue
		}
		var head struct {
			Metadata struct{ Annotations map[string]string }
		}
		if json.Unmarshal(o.JSON, &head) != nil {
			continue // found as AK101
		}
		for _, entry := range strings.FieldsFunc(head.Metadata.Annotations[proofAnnotation], func(r rune) bool { return r == ';' || r == '\n' }) {
			webhook, file, _ := strings.Cut(entry, "=")
			webhook, file = strings.TrimSpace(webhook), strings.TrimSpace(file)
			if !filepath.IsAbs(file) && o.File != "" && o.File != "-" {
				file = filepath.Join(filepath.Dir(o.File), file)
			}
			if err := proves(file, webhook); err != nil {
				s.Note("%s: no proof that %s is safe to call again: %s", o.Where(), webhook, err)
				continue
			}
			names = append(names, webhook)
		}
	}
	return names
}

// proves reads the results and says why they are no proof.
func proves(file, webhook string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var report idempotence.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	holds := func(l idempotence.LawResult) bool { return l.Verdict == idempotence.Holds && l.Cases > 0 }
	switch {
	case !slices.Contains(report.Webhooks, webhook):
		return fmt.Errorf("%s is about %s", file, strings.Join(report.Webhooks, ", "))
	case report.Incomplete != "":
		return fmt.Errorf("%s is incomplete: %s", file, report.Incomplete)
	case !report.OK():
		return fmt.Errorf("%s has laws that are broken", file)
	case !slices.ContainsFunc(report.Laws, holds):
		return fmt.Errorf("%s has no law that holds", file)
	}
	return nil
}
