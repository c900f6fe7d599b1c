// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"
)

// Check tests a subject in a Go test, and fails the test with a report if it breaks a law, or if
// too little could be tried to tell. The context of the test ends the run.
func Check(t testing.TB, subject Subject, opts ...Option) *Report {
	t.Helper()
	report, err := Run(t.Context(), subject, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || report.Incomplete != "" {
		var text strings.Builder
		_ = report.WriteText(&text, false)
		t.Error("\n" + text.String())
	}
	return report
}
