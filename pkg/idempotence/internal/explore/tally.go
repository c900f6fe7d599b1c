// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/admitkit/admitkit/pkg/idempotence/internal/laws"

// A Tally counts the results for one kind. The verdicts on the laws follow from it.
type Tally struct {
	Objects int // valid objects that were tried
	Allowed int // objects that the webhook allowed
	Changed int // objects that the webhook changed
	Called  int // objects for which the webhook was called

	SkipReasons []string // why the webhook was not called for the first skipped object
	Denial      string   // message for the first object that the webhook denied
	Refusal     string   // message for the first object that the API server rejected

	Broken  map[laws.Law]bool // laws with a violation
	Advised map[laws.Law]bool // laws with advice
	Tried   map[laws.Law]int  // cases tried
	Decided map[laws.Law]int  // cases that decided whether the law passes
}

func newTally() Tally {
	return Tally{Broken: map[laws.Law]bool{}, Advised: map[laws.Law]bool{}, Tried: map[laws.Law]int{}, Decided: map[laws.Law]int{}}
}
