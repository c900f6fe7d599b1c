// SPDX-License-Identifier: Apache-2.0

package jsondiff

// places tells where the elements of a list stand while it is put into a new order, from the
// front: the elements done so far are in their order, each right behind its predecessor. In
// between and behind them stand those that will move, where they always were, and behind them
// those that stay.
type places struct {
	stays      []bool // of the new list: which elements never move
	from       []int
	order      []int // the elements that stay, as indices of the new list
	staysUntil []int // of the old list: how many of those that stay come before each element
	moving     tally // of the old list: those that have yet to move
	at         int   // how many elements are done
	passed     int   // how many of them stay
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

// next returns where the next element belongs: behind those done, and those that will move
// but stand before the last one done that stays.
func (p *places) next() int {
	if p.passed == 0 {
		return p.at
	}
	return p.at + p.moving.before(p.from[p.order[p.passed-1]])
}

// take returns where the element with an old index stands that has to move now.
func (p *places) take(i int) int {
	p.moving.add(i, -1)
	if k := p.staysUntil[i]; k < p.passed {
		return p.order[k] + p.moving.before(i) // before one that is done and stays
	}
	return p.at + p.staysUntil[i] - p.passed + p.moving.before(i)
}

func (p *places) done(j int) {
	p.at++
	if p.stays[j] {
		p.passed++
	}
}

// A tally counts elements by index, and sums up the counts before an index in few steps (it is
// a Fenwick tree).
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
