// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"

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
	causes  map[laws.Law][]cause     // of the findings
	refused map[string]bool          // Refusals of the violations of L1
	Tried   map[laws.Law]int         // cases tried
	Decided map[laws.Law]int         // cases that decided whether the law passes
}

func newTally() Tally {
	return Tally{Broken: map[laws.Law]bool{}, Advised: map[laws.Law]bool{}, Modes: map[laws.Law][]laws.Mode{}, causes: map[laws.Law][]cause{}, refused: map[string]bool{}, Tried: map[laws.Law]int{}, Decided: map[laws.Law]int{}}
}

// A cause describes the cause of a finding: how the law fails, and at which fields.
type cause struct {
	mode   laws.Mode
	advice bool
	places []string // see Run.PlacesOf
}

// like reports whether two findings of one law most likely have the same cause: their fields overlap or, if the fields
// of one are not known, their modes are equal.
func (c cause) like(other cause) bool {
	if len(c.places) == 0 || len(other.places) == 0 {
		return c.mode == other.mode
	}
	return slices.ContainsFunc(c.places, func(p string) bool {
		return slices.ContainsFunc(other.places, func(q string) bool {
			return p == q || strings.HasPrefix(p, q+".") || strings.HasPrefix(q, p+".")
		})
	})
}

// Add records a finding. places are the fields from Run.PlacesOf, before and after the case was made smaller.
func (t *Tally) Add(f *laws.Finding, places ...string) {
	law := f.Case.Law
	t.causes[law] = append(t.causes[law], cause{f.Mode, f.Advice, places})
	if f.Advice {
		t.Advised[law] = true
		return
	}
	if law == laws.L1 {
		for _, refusal := range f.Refusals {
			t.refused[refusal] = true
		}
	}
	t.Broken[law] = true
	t.Modes[law] = append(t.Modes[law], f.Mode)
}

// knowsRefusals reports whether the API server rejects the result of a finding for the same reasons as results that
// violate L1.
func (t *Tally) knowsRefusals(f *laws.Finding) bool {
	return f.Case.Law != laws.L1 && len(f.Refusals) > 0 && !slices.ContainsFunc(f.Refusals, func(r string) bool { return !t.refused[r] })
}

// knows reports whether a finding repeats an earlier one. A violation repeats a violation of the same law with the same
// cause. Advice repeats any finding of the same law with the same cause or mode. A patch without effect repeats such a
// finding of any law.
func (t *Tally) knows(f *laws.Finding, places ...string) bool {
	if f.Mode == laws.NoOpPatch && (t.knowsMode(laws.L1, f.Mode) || t.knowsMode(laws.L10, f.Mode) || t.knowsMode(laws.L5, f.Mode)) {
		return true
	}
	this := cause{f.Mode, f.Advice, places}
	return slices.ContainsFunc(t.causes[f.Case.Law], func(known cause) bool {
		if f.Advice && known.mode == f.Mode {
			return true
		}
		return (f.Advice || !known.advice) && known.mode != laws.NoOpPatch && this.like(known)
	})
}

// knowsMode reports whether a law has a finding with the mode.
func (t *Tally) knowsMode(law laws.Law, mode laws.Mode) bool {
	return slices.ContainsFunc(t.causes[law], func(c cause) bool { return c.mode == mode })
}

// violations returns the number of violations of a law.
func (t *Tally) violations(law laws.Law) int { return len(t.Modes[law]) }

// findings returns the number of findings about a law, with advice.
func (t *Tally) findings(law laws.Law) int { return len(t.causes[law]) }
