// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
)

// TestKnownFindings checks which findings the tally treats as repeats. A violation is a repeat if an earlier violation
// of the same law is about the same field, or about an unknown field in the same failure mode. Advice is a repeat after
// any finding in the same mode or about the same field. A violation is never a repeat of advice.
func TestKnownFindings(t *testing.T) {
	finding := func(law laws.Law, mode laws.Mode, advice bool) *laws.Finding {
		return &laws.Finding{Case: laws.Case{Law: law}, Mode: mode, Advice: advice}
	}
	tally := newTally()
	tally.Add(finding(laws.L1, laws.Grows, true), "spec.volumes")
	if tally.Broken[laws.L1] || tally.knows(finding(laws.L1, laws.Grows, false), "spec.volumes") {
		t.Error("advice hides a violation")
	}
	tally.Add(finding(laws.L1, laws.Grows, false), "spec.containers")
	rows := []struct {
		name    string
		finding *laws.Finding
		place   string
		want    bool
	}{
		{"the same mode elsewhere", finding(laws.L1, laws.Grows, false), "spec.volumes", false},
		{"inside of the same place", finding(laws.L1, laws.Grows, false), "spec.containers.env", true},
		{"the same mode at an unknown place", finding(laws.L1, laws.Grows, false), "", true},
		{"another mode at the same place", finding(laws.L1, laws.Invalid, false), "spec.containers", true},
		{"another mode elsewhere", finding(laws.L1, laws.Invalid, false), "spec.volumes", false},
		{"another mode at an unknown place", finding(laws.L1, laws.Invalid, false), "", false},
		{"another law", finding(laws.L5, laws.Grows, false), "spec.containers", false},
		{"advice after a violation", finding(laws.L1, laws.Invalid, true), "spec.containers", true},
		{"advice about something else", finding(laws.L1, laws.Invalid, true), "metadata.labels", false},
		{"the advice again", finding(laws.L1, laws.Grows, true), "metadata.labels", true},
		{"a patch without effect", finding(laws.L10, laws.NoOpPatch, true), "", false},
	}
	for _, row := range rows {
		places := []string{row.place}
		if row.place == "" {
			places = nil
		}
		if got := tally.knows(row.finding, places...); got != row.want {
			t.Errorf("%s: known %t, want %t", row.name, got, row.want)
		}
	}
	tally.Add(finding(laws.L10, laws.NoOpPatch, true))
	if !tally.knows(finding(laws.L1, laws.NoOpPatch, true)) || tally.knows(finding(laws.L10, laws.Removes, false)) {
		t.Error("a patch without effect is reported twice, or hides a violation")
	}
}
