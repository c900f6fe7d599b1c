// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
)

// TestKnownFindings checks which findings the tally treats as repeats. A violation is a repeat if an earlier violation of
// the same law has the same failure mode or path. Advice is a repeat after any finding of its law. A violation is never
// a repeat of advice.
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
		{"the same mode elsewhere", finding(laws.L1, laws.Grows, false), "spec.volumes", true},
		{"another mode at the same place", finding(laws.L1, laws.Invalid, false), "spec.containers", true},
		{"another mode elsewhere", finding(laws.L1, laws.Invalid, false), "spec.volumes", false},
		{"another mode at an unknown place", finding(laws.L1, laws.Invalid, false), "", false},
		{"another law", finding(laws.L5, laws.Grows, false), "spec.containers", false},
		{"advice after a violation", finding(laws.L1, laws.Invalid, true), "metadata.labels", true},
	}
	for _, row := range rows {
		if got := tally.knows(row.finding, row.place); got != row.want {
			t.Errorf("%s: known %t, want %t", row.name, got, row.want)
		}
	}
}
