// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"slices"
	"sort"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// align returns, for each element of a, the index of the element of b that it stands for, and
// whether a key says so.
func align(b, a, r []*node, s shape) (from []int, keyed bool) {
	for _, key := range []string{s.mergeKey, "name"} {
		if from, ok := alignByKey(b, a, key); key != "" && ok {
			return from, true
		}
	}
	from = alignByContent(b, a)
	matchEdited(b, a, from)
	matchInPlace(b, a, r, s.elem(), from)
	return from, false
}

// alignByKey works where every element has the key and no two of a list share it.
func alignByKey(b, a []*node, key string) ([]int, bool) {
	places, ok := keyPlaces(b, key)
	if !ok {
		return nil, false
	}
	if _, ok := keyPlaces(a, key); !ok {
		return nil, false
	}
	from := make([]int, len(a))
	for j, elem := range a {
		from[j] = none
		if i, found := places[string(elem.members[key].raw)]; found {
			from[j] = i
		}
	}
	return from, true
}

func keyPlaces(list []*node, key string) (map[string]int, bool) {
	places := make(map[string]int, len(list))
	for i, elem := range list {
		k := elem.members[key]
		if k == nil {
			return nil, false
		}
		if _, taken := places[string(k.raw)]; taken {
			return nil, false
		}
		places[string(k.raw)] = i
	}
	return places, true
}

// alignByContent matches equal elements: as many as can keep their order, then those that
// moved.
func alignByContent(b, a []*node) []int {
	from := slices.Repeat([]int{none}, len(a))
	x, y := numberContents(b, a)
	start, end := 0, 0
	for start < min(len(x), len(y)) && x[start] == y[start] {
		from[start] = start
		start++
	}
	for end < min(len(x), len(y))-start && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
		from[len(y)-end] = len(x) - end
	}
	for _, p := range commonSubsequence(x[start:len(x)-end], y[start:len(y)-end]) {
		from[start+p.j] = start + p.i
	}
	matchMoved(x, y, from)
	return from
}

// numberContents gives equal elements equal numbers.
func numberContents(b, a []*node) (x, y []int) {
	numbers := map[string]int{}
	number := func(list []*node) []int {
		out := make([]int, len(list))
		for i, elem := range list {
			n, known := numbers[string(elem.raw)]
			if !known {
				n = len(numbers)
				numbers[string(elem.raw)] = n
			}
			out[i] = n
		}
		return out
	}
	return number(b), number(a)
}

// matchMoved matches what is left of equal elements: each with the next one behind the match
// of its predecessor, or else with the first.
func matchMoved(x, y, from []int) {
	taken := make([]bool, len(x))
	for _, i := range from {
		if i != none {
			taken[i] = true
		}
	}
	free := map[int]*freePlaces{}
	for i, content := range x {
		if taken[i] {
			continue
		}
		if free[content] == nil {
			free[content] = &freePlaces{}
		}
		free[content].add(i)
	}
	last := none
	for j, content := range y {
		if places := free[content]; from[j] == none && places != nil {
			from[j] = places.take(last + 1)
		}
		if from[j] != none {
			last = from[j]
		}
	}
}

// freePlaces are the places of equal elements, in order, some of which are taken.
type freePlaces struct {
	places []int
	next   []int // where to look on when this one is taken; itself when it is free
}

func (f *freePlaces) add(place int) {
	f.places = append(f.places, place)
	f.next = append(f.next, len(f.next))
}

// take takes the first free place from at on, or else the first of all, or none.
func (f *freePlaces) take(at int) int {
	k := f.free(sort.SearchInts(f.places, at))
	if k == len(f.places) {
		if k = f.free(0); k == len(f.places) {
			return none
		}
	}
	f.next[k] = k + 1
	return f.places[k]
}

func (f *freePlaces) free(k int) int {
	first := k
	for first < len(f.next) && f.next[first] != first {
		first = f.next[first]
	}
	for k < first { // shorten the way for the next one
		k, f.next[k] = f.next[k], first
	}
	return first
}

// comparisons bounds how many pairs of elements matchEdited looks at, or nearly so.
const comparisons = 1 << 16

// matchEdited finds the objects that were edited: pairs of one that is new and one that is
// gone which share half of their members or more, those that share most first, and of equals
// those that stand in one gap.
func matchEdited(b, a []*node, from []int) {
	gone, fresh := unmatched(b, a, from)
	gapOld, gapNew := gaps(len(b), from)
	type likeness struct {
		pair
		shared, apart int
	}
	var alike []likeness
	reach := 8 + comparisons/(1+len(fresh))
	for place, j := range fresh {
		for _, i := range gone[min(len(gone), max(0, place-reach)):min(len(gone), place+reach)] {
			if n := shared(b[i], a[j]); 2*n >= max(len(b[i].members), len(a[j].members)) {
				alike = append(alike, likeness{pair{i, j}, n, max(gapOld[i]-gapNew[j], gapNew[j]-gapOld[i])})
			}
		}
	}
	slices.SortFunc(alike, func(x, y likeness) int {
		return cmp.Or(cmp.Compare(y.shared, x.shared), cmp.Compare(x.apart, y.apart),
			cmp.Compare(x.i, y.i), cmp.Compare(x.j, y.j))
	})
	taken := make([]bool, len(b))
	for _, p := range alike {
		if !taken[p.i] && from[p.j] == none {
			from[p.j], taken[p.i] = p.i, true
		}
	}
}

// unmatched lists the objects that only one of the lists has.
func unmatched(b, a []*node, from []int) (gone, fresh []int) {
	taken := make([]bool, len(b))
	for j, i := range from {
		if i != none {
			taken[i] = true
		} else if a[j].kind == jsonraw.Object {
			fresh = append(fresh, j)
		}
	}
	for i, elem := range b {
		if !taken[i] && elem.kind == jsonraw.Object {
			gone = append(gone, i)
		}
	}
	return gone, fresh
}

func shared(x, y *node) int {
	n := 0
	for name, member := range x.members {
		if other := y.members[name]; other != nil && (same(member, other) || member.empty() && other.empty()) {
			n++
		}
	}
	return n
}

// gaps counts, for each element of the old list of n elements and of the new one, how many
// that keep their order stand before it or in its place.
func gaps(n int, from []int) (before, after []int) {
	before, after = make([]int, n), make([]int, len(from))
	count := 0
	for j, stays := range longestIncreasing(from) {
		if stays {
			count++
			before[from[j]] = 1
		}
		after[j] = count
	}
	for i := 1; i < n; i++ {
		before[i] += before[i-1]
	}
	return before, after
}

// matchInPlace pairs what is new with what is gone, in order, between two elements that keep
// their order: in a list without keys, what stands in the place of another is that, edited.
// The Go type may know so little of an element that nothing else tells them apart. Where it
// knows all of every object there is no need to guess: they can be new.
func matchInPlace(b, a, r []*node, s shape, from []int) {
	taken := make([]bool, len(b))
	for _, i := range from {
		if i != none {
			taken[i] = true
		}
	}
	gapOld, gapNew := gaps(len(b), from)
	more := slices.ContainsFunc(r, s.misses)
	i := 0
	for j, elem := range a {
		for i < len(b) && (taken[i] || gapOld[i] < gapNew[j]) {
			i++
		}
		if from[j] == none && i < len(b) && gapOld[i] == gapNew[j] && b[i].kind == elem.kind &&
			(more || elem.kind != jsonraw.Object) {
			from[j], i = i, i+1
		}
	}
}
