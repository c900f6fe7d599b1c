// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"fmt"
	"slices"
)

// A list holds the elements of one list in three documents, or a part of these elements: b (before), a (after) and r
// (raw). r has as many elements as b.
type list struct {
	at      string
	first   int // index of the part's first element in the whole list
	b, a, r []node
	elem    shape
}

func (l *list) index(i int) string { return elementPointer(l.at, l.first+i) }

// differing returns the part between the equal elements at the front and those at the back.
func (l *list) differing() *list {
	start, end := 0, 0
	shorter := min(len(l.b), len(l.a))
	for start < shorter && same(&l.b[start], &l.a[start]) {
		start++
	}
	for end < shorter-start && same(&l.b[len(l.b)-1-end], &l.a[len(l.a)-1-end]) {
		end++
	}
	part := *l
	part.first = start
	part.b, part.r = l.b[start:len(l.b)-end], l.r[start:len(l.r)-end]
	part.a = l.a[start : len(l.a)-end]
	return &part
}

func (d *differ) list(at string, before, after, raw *node, s shape) {
	d.open(at, before, after, raw)
	l := &list{at: at, b: before.elems(), a: after.elems(), r: raw.elems(), elem: s.elem()}
	if len(l.r) != len(l.b) {
		d.set(at, true, after)
		return
	}
	part := l.differing()
	from, keyed := d.matchByKey(l, part, s.mergeKey)
	if !keyed {
		from = d.match(l, part)
		d.checkAlike(l, part, from)
	}
	if len(part.a) == len(l.a) && !slices.ContainsFunc(from, func(i int) bool { return i != none }) {
		d.set(at, true, after) // no old element stays
		return
	}
	d.reorder(part, len(part.b), from)
	for j, i := range from {
		if i != none && !same(&part.b[i], &part.a[j]) {
			d.value(part.index(j), &part.b[i], &part.a[j], &part.r[i], l.elem)
		}
	}
}

// checkAlike fails if the handler removed one of several elements that the Go type cannot tell apart but that differ
// in the document, because it is then unknown which one to remove. from has, for each new element of part, the index
// of its old element.
func (d *differ) checkAlike(l, part *list, from []int) {
	gone := slices.Repeat([]bool{true}, len(part.b))
	for _, i := range from {
		if i != none {
			gone[i] = false
		}
	}
	if !slices.Contains(gone, true) || d.untyped {
		return
	}
	values := newNumbering(0)
	for i := range part.b {
		if gone[i] {
			values.number(&part.b[i])
		}
	}
	stays := slices.Repeat([]int{none}, len(values.values)) // by value: the last element that stays
	for i := range l.b {
		if p := i - part.first; p < 0 || p >= len(gone) || !gone[p] {
			if value := values.find(&l.b[i]); value != none {
				stays[value] = i
			}
		}
	}
	for p := range gone {
		i := part.first + p
		if !gone[p] {
			continue
		}
		k := stays[values.find(&l.b[i])]
		if k != none && !same(&l.r[i], &l.r[k]) && (l.elem.misses(&l.r[i]) || l.elem.misses(&l.r[k])) {
			d.fail(l.at, &Error{Err: fmt.Errorf("%w: elements %d and %d", ErrAlike, min(i, k), max(i, k))})
		}
	}
}

// reorder writes the operations that bring a list of n elements into the new order, in which element j is
// old element from[j]. Elements that keep their relative order stay. Each other element is put directly after
// its predecessor, which is in its final place by then.
func (d *differ) reorder(l *list, n int, from []int) {
	kept := make([]bool, n)
	for _, i := range from {
		if i != none {
			kept[i] = true
		}
	}
	for i := n - 1; i >= 0; i-- {
		if !kept[i] {
			d.remove(l.index(i))
		}
	}
	p := newPlaces(n, from)
	for j, i := range from {
		switch place := p.next(); {
		case i == none:
			d.ops = append(d.ops, Operation{Op: Add, Path: l.index(place), Value: bytes.Clone(l.a[j].raw)})
		case !p.stays[j]:
			was := p.take(i)
			if was < place {
				place--
			}
			if was != place {
				d.ops = append(d.ops, Operation{Op: Move, From: l.index(was), Path: l.index(place)})
			}
		}
		p.done(j)
	}
}
