// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
)

// A Tally counts the results for one kind. The verdicts on the laws follow from it.
type Tally struct {
	Objects int // valid objects that were tried
	Allowed int // objects that the webhook allowed
	Changed int // objects that the webhook changed
	Called  int // objects for which the webhook was called

	SkipReasons []string // why the webhook was not called for the first skipped object
	Denial      string   // message for the first object that the webhook denied
	Refusal     string   // message for the first object that the API server rejected

	Broken  map[laws.Law]bool        // laws with a violation
	Advised map[laws.Law]bool        // laws with advice
	Modes   map[laws.Law][]laws.Mode // failure modes of the violations
	places  map[laws.Law][]string    // see Run.PlaceOf
	Tried   map[laws.Law]int         // cases tried
	Decided map[laws.Law]int         // cases that decided whether the law passes
}

func newTally() Tally {
	return Tally{Broken: map[laws.Law]bool{}, Advised: map[laws.Law]bool{}, Modes: map[laws.Law][]laws.Mode{}, places: map[laws.Law][]string{}, Tried: map[laws.Law]int{}, Decided: map[laws.Law]int{}}
}

// Add records a finding. place is the result of Run.PlaceOf, which may be empty.
func (t *Tally) Add(f *laws.Finding, place string) {
	law := f.Case.Law
	if f.Advice {
		t.Advised[law] = true
		return
	}
	t.Broken[law] = true
	t.Modes[law] = append(t.Modes[law], f.Mode)
	if place != "" {
		t.places[law] = append(t.places[law], place)
	}
}

// knows reports whether a finding most likely has the same cause as an earlier one: a violation of the same law, with
// the same failure mode or at the same place. Advice is known after any finding of the law.
func (t *Tally) knows(f *laws.Finding, place string) bool {
	law := f.Case.Law
	if f.Advice {
		return t.Advised[law] || t.Broken[law]
	}
	return slices.Contains(t.Modes[law], f.Mode) || slices.Contains(t.places[law], place)
}
