// SPDX-License-Identifier: Apache-2.0

package explore

import "math"

// leastTried is the minimum number of objects of a kind that are tried before a run can end early.
const leastTried = 24

// quiet decides when a run ends because the last objects showed nothing new: no kind of patch, denial or warning,
// and no violation.
type quiet struct {
	run       *Run
	seen      int // number of kinds of answers and violations so far
	lastNew   int // number of the last object that showed something new
	unlimited bool
}

func newQuiet(r *Run) *quiet { return &quiet{run: r, unlimited: r.Objects == math.MaxInt} }

// canEnd reports whether the run can end before the i-th object, because the latest objects, a third of r.Objects,
// showed nothing new. Before that, the samples, the objects with every kind of field, leastTried objects and half of
// all objects must have been tried.
func (q *quiet) canEnd(i int) bool {
	seen := q.run.Behaviour.Seen()
	for _, n := range q.run.Tally.Modes {
		seen += len(n)
	}
	if seen != q.seen {
		q.seen, q.lastNew = seen, i
	}
	special := len(q.run.inputs.samples) + fullEvery
	return !q.unlimited && i >= max(leastTried, q.run.Objects/2, special) && i-q.lastNew >= q.run.Objects/3
}
