// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"

	"github.com/admitkit/admitkit/test/corpus"
)

// TestUnneededExceptionIsNoted declares exceptions that cover no change. The report must note them, except for
// exceptions for rivals and for laws that were not checked.
func TestUnneededExceptionIsNoted(t *testing.T) {
	const elsewhere = "metadata.annotations[example.com/other]"
	for _, tt := range []struct {
		reason    string
		exception Exception
		noted     bool
	}{
		{"nothing happens there", Exception{Path: elsewhere}, true},
		{"nor in the way of the law", Exception{Path: elsewhere, Law: L5}, true},
		{"the rules have no UPDATE", Exception{Path: elsewhere, Law: L6}, false},
		{"the law was left out", Exception{Path: elsewhere, Law: L1}, false},
		{"there is nothing to match", Exception{Path: "rival:other", Law: L11}, false},
	} {
		tt.exception.Reason = tt.reason
		report, err := Run(t.Context(), editing("", "v1", "configmaps", onCreate, marked), Options{Objects: 3, Without: []Law{L1}, Exceptions: []Exception{tt.exception}})
		if err != nil || !report.OK() || len(report.Incomplete) > 0 {
			t.Fatalf("%s: %v\n%s", tt.reason, err, text(report))
		}
		if noted := strings.Contains(report.Texts(report.Notes), "was not needed"); noted != tt.noted {
			t.Errorf("%s: noted %v:\n%s", tt.reason, noted, text(report))
		}
	}
}

// TestImpureWebhookHasNoOtherFindings tests webhooks that answer equal requests differently. The report must have no
// findings other than L3 and advice.
func TestImpureWebhookHasNoOtherFindings(t *testing.T) {
	for _, name := range []string{"P17 map iteration decides list order", "M22 writes the time in seconds", "P23 wall clock"} {
		for _, c := range corpus.Patterns() {
			if c.Name != name {
				continue
			}
			report := runCase(t, c, Options{Objects: mutationObjects})
			for _, v := range report.Findings {
				if v.Law != L3 && v.Verdict != Advice {
					t.Errorf("%s: %s, too:\n%s", name, v.Law, text(report))
				}
			}
		}
	}
}
