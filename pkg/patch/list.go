// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"
	"sort"
)

// none marks an element of the new list that stands for no element of the old one.
const none = -1

func (d *differ) list(at Pointer, b, a, r *node, s shape) {
	from, keyed := align(b.elems, a.elems, r.elems, s)
	if !keyed {
		d.checkAlike(at, b, r, s.elem(), from)
	}
	if !slices.ContainsFunc(from, func(i int) bool { return i != none }) {
		d.set(at, true, a) // all of it is new
		return
	}
	d.reorder(at, len(b.elems), a.elems, from)
	elem := s.elem()
	for j, i := range from {
		if i != none && !same(b.elems[i], a.elems[j]) {
			d.value(at.Index(j), b.elems[i], a.elems[j], r.elems[i], elem)
		}
	}
}

// checkAlike fails when one of several elements goes that are equal to the type, while the
// document knows more of them: nothing tells which of them the handler took out.
func (d *differ) checkAlike(at Pointer, b, r *node, s shape, from []int) {
	gone := slices.Repeat([]bool{true}, len(b.elems))
	for _, i := range from {
		if i != none {
			gone[i] = false
		}
	}
	if !slices.Contains(gone, true) {
		return
	}
	stays := map[string]int{}
	for i, elem := range b.elems {
		if !gone[i] {
			stays[string(elem.raw)] = i
		}
	}
	for i, elem := range b.elems {
		k, alike := stays[string(elem.raw)]
		if !gone[i] || !alike || same(r.elems[i], r.elems[k]) {
			continue
		}
		if s.misses(r.elems[i]) || s.misses(r.elems[k]) {
			d.err = &Error{Pointer: at, Err: fmt.Errorf("%w: elements %d and %d", ErrAlike, min(i, k), max(i, k))}
		}
	}
}

// reorder writes the operations that bring a list of n elements into the new order, where
// element j comes from old element from[j]. Elements that keep their relative order stay;
// each other one is put right behind its predecessor, which by then has its place.
func (d *differ) reorder(at Pointer, n int, elems []*node, from []int) {
	kept := make([]bool, n)
	for _, i := range from {
		if i != none {
			kept[i] = true
		}
	}
	now := make([]int, 0, len(from)) // the list as it stands: old index, or n+j for new element j
	for i := n - 1; i >= 0; i-- {
		if !kept[i] {
			d.remove(at.Index(i))
		}
	}
	for i := range n {
		if kept[i] {
			now = append(now, i)
		}
	}
	stays := longestIncreasing(from)
	pending := len(now) - count(stays) // moves still to come: only they make positions differ
	for j, i := range from {
		before := j // the place for element j
		if pending > 0 && j > 0 {
			before = slices.Index(now, identity(from, j-1, n)) + 1
		}
		switch {
		case i == none:
			d.ops = append(d.ops, Operation{Op: Add, Path: at.Index(before), Value: elems[j].raw})
			if pending > 0 {
				now = slices.Insert(now, before, identity(from, j, n))
			}
		case !stays[j]:
			was := slices.Index(now, i)
			now = slices.Delete(now, was, was+1)
			if was < before {
				before--
			}
			now = slices.Insert(now, before, i)
			pending--
			if was != before {
				d.ops = append(d.ops, Operation{Op: Move, From: at.Index(was), Path: at.Index(before)})
			}
		}
	}
}

func identity(from []int, j, n int) int {
	if from[j] != none {
		return from[j]
	}
	return n + j
}

func count(flags []bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// longestIncreasing marks a longest subsequence of from, gaps left out, that increases.
func longestIncreasing(from []int) []bool {
	var tails []int // tails[k]: where the best subsequence of length k+1 ends
	prev := make([]int, len(from))
	for j, i := range from {
		if i == none {
			continue
		}
		k := sort.Search(len(tails), func(k int) bool { return from[tails[k]] >= i })
		prev[j] = none
		if k > 0 {
			prev[j] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, j)
		} else {
			tails[k] = j
		}
	}
	marks := make([]bool, len(from))
	if len(tails) > 0 {
		for j := tails[len(tails)-1]; j != none; j = prev[j] {
			marks[j] = true
		}
	}
	return marks
}
