// SPDX-License-Identifier: Apache-2.0

package jsondiff

// places tracks the index of every element while reorder brings a list into its new order, from the front. Finished
// elements are already in their new order. Elements that have yet to move are still between them or after them.
// Unfinished elements that stay come after all finished elements.
type places struct {
	stays      []bool // by new index: the element never moves
	from       []int
	order      []int // new indices of the elements that stay
	staysUntil []int // by old index: how many staying elements come before
	moving     tally // by old index: the elements that have yet to move
	at         int   // how many elements are finished
	passed     int   // how many of the finished elements stay
}

func newPlaces(n int, from []int) *places {
	p := &places{stays: longestIncreasing(from), from: from, staysUntil: make([]int, n+1), moving: make(tally, n+1)}
	for j, i := range from {
		switch {
		case p.stays[j]:
			p.order = append(p.order, j)
			p.staysUntil[i+1] = 1
		case i != none:
			p.moving.add(i, 1)
		}
	}
	for i := range n {
		p.staysUntil[i+1] += p.staysUntil[i]
	}
	return p
}

// next returns the index to which the next element belongs. It is after all finished elements, and after those
// unfinished elements that are before the last finished element that stays.
func (p *places) next() int {
	if p.passed == 0 {
		return p.at
	}
	return p.at + p.moving.before(p.from[p.order[p.passed-1]])
}

// take returns the current index of the old element i, which the caller moves now.
func (p *places) take(i int) int {
	p.moving.add(i, -1)
	if k := p.staysUntil[i]; k < p.passed {
		return p.order[k] + p.moving.before(i) // before a finished element that stays
	}
	return p.at + p.staysUntil[i] - p.passed + p.moving.before(i)
}

func (p *places) done(j int) {
	p.at++
	if p.stays[j] {
		p.passed++
	}
}

// A tally counts elements by index and sums the counts before an index in logarithmic time (a Fenwick
// tree).
type tally []int

func (t tally) add(i, n int) {
	for i++; i < len(t); i += i & -i {
		t[i] += n
	}
}

func (t tally) before(i int) int {
	sum := 0
	for ; i > 0; i &= i - 1 {
		sum += t[i]
	}
	return sum
}
