// SPDX-License-Identifier: Apache-2.0

package idempotence

// A tally counts the results for one kind. The verdicts on the laws follow from it.
type tally struct {
	objects int // valid objects that were tried
	allowed int // objects that the webhook allowed
	changed int // objects that the webhook changed
	called  int // objects for which the webhook was called

	left    []string // why the webhook was not called for the first skipped object
	denial  string   // message for the first object that the webhook denied
	refusal string   // message for the first object that the API server rejected

	broken   map[Law]bool // laws with a violation
	advised  map[Law]bool // laws with advice
	impure   bool         // equal requests had different results
	checksOf map[Law]int  // cases tried
	decided  map[Law]int  // cases that told whether the law passes
}

func newTally() tally {
	return tally{broken: map[Law]bool{}, advised: map[Law]bool{}, checksOf: map[Law]int{}, decided: map[Law]int{}}
}
