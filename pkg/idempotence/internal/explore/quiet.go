// SPDX-License-Identifier: Apache-2.0

package explore

import "math"

// leastTried is the number of objects of a kind that are tried even if nothing new is seen.
const leastTried = 24

// quiet decides when a run ends because the last objects showed nothing new: no kind of patch or denial, and no finding.
type quiet struct {
	run       *Run
	seen      int // what the run has seen so far
	lastNew   int // number of the last object that showed something new
	unlimited bool
}

func newQuiet(r *Run) *quiet { return &quiet{run: r, unlimited: r.Objects == math.MaxInt} }

// since reports whether the run can end before the i-th object. It never ends before the samples and the special
// objects were tried, nor while fewer than half of the objects were.
func (q *quiet) since(i int) bool {
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
