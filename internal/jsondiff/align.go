// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// commonKeys are the merge keys of the built-in types, the most frequent first.
var commonKeys = []string{
	"name", "type", "uid", "ip", "mountPath", "devicePath", "containerPort", "port", "topologyKey",
}

// matchByKey returns, for each new element in part, the index in part of the old element with the same key, or none.
// part is the part of l that differs. matchByKey reports false unless every element of l has a key, and no two elements
// of one document have the same key.
func (d *differ) matchByKey(l, part *list, mergeKey string) (from []int, found bool) {
	keys := []string{mergeKey, "name"}
	if d.untyped {
		keys = commonKeys
	}
	for _, key := range keys {
		if from, found = matchBy(key, l); found {
			break
		}
	}
	if !found {
		return nil, false
	}
	from = from[part.first:][:len(part.a)] // the other elements did not move
	for j, i := range from {
		if i != none {
			from[j] = i - part.first
		}
	}
	return from, true
}

func matchBy(key string, l *list) ([]int, bool) {
	if key == "" {
		return nil, false
	}
	values := newNumbering(0)
	for i := range l.b {
		value, ok := l.b[i].find(key)
		if !ok || values.number(value) != i {
			return nil, false
		}
	}
	from, taken := make([]int, len(l.a)), make([]bool, len(l.b))
	for j := range l.a {
		value, ok := l.a[j].find(key)
		if !ok {
			return nil, false
		}
		known := len(values.values)
		switch i := values.number(value); {
		case i == known:
			from[j] = none
		case i < len(l.b) && !taken[i]:
			from[j], taken[i] = i, true
		default:
			return nil, false
		}
	}
	return from, true
}

// match returns, for each new element in part, the index of the old element that it matches, or none. It is for lists
// whose elements have no keys, so it compares their contents.
func (d *differ) match(l, part *list) []int {
	from := matchEqual(part)
	d.matchEdited(part, from)
	matchInPlace(l, part, from)
	untangle(part, from)
	return from
}

// untangle changes from so that elements with equal encodings keep their order, because exchanging them has no effect.
func untangle(l *list, from []int) {
	values := newNumbering(len(l.b))
	alike := map[int][]int{} // by value: the new elements that match an old one, in order
	for j, i := range from {
		if i != none {
			value := values.number(&l.b[i])
			alike[value] = append(alike[value], j)
		}
	}
	for _, group := range alike {
		if !slices.IsSortedFunc(group, func(j, k int) int { return cmp.Compare(from[j], from[k]) }) {
			untangleGroup(l, from, group)
		}
	}
}

// untangleGroup does the work of untangle for one group of elements that the Go type cannot tell apart.
func untangleGroup(l *list, from, group []int) {
	values := newNumbering(len(group))
	places := map[int][]int{} // by value: the indices of its elements
	numbers := make([]int, len(group))
	for k, j := range group {
		n := &l.r[from[j]]
		if parsed, err := parse(n.raw); err == nil && n.hash == 0 {
			n = parsed
		}
		numbers[k] = values.number(n)
		places[numbers[k]] = append(places[numbers[k]], from[j])
	}
	for _, same := range places {
		slices.Sort(same)
	}
	for k, j := range group {
		from[j], places[numbers[k]] = places[numbers[k]][0], places[numbers[k]][1:]
	}
}

// matchEqual matches equal elements: first a longest common subsequence, then the elements that moved.
func matchEqual(l *list) []int {
	from := slices.Repeat([]int{none}, len(l.a))
	x, y := numberElements(l)
	for _, p := range commonSubsequence(x, y) {
		from[p.j] = p.i
	}
	matchMoved(x, y, from)
	return from
}

// numberElements numbers the elements so that equal elements have equal numbers.
func numberElements(l *list) (x, y []int) {
	values := newNumbering(len(l.b))
	x, y = make([]int, len(l.b)), make([]int, len(l.a))
	for i := range l.b {
		x[i] = values.number(&l.b[i])
	}
	for j := range l.a {
		y[j] = values.number(&l.a[j])
	}
	return x, y
}

// matchMoved matches each remaining new element with an equal old element that is still free. It takes the first one
// after the old element that was matched last, or else the first one in the list.
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

// freePlaces lists the indices of equal elements in order and knows which of them are taken.
type freePlaces struct {
	places []int
	next   []int // where to continue if this index is taken; the index itself if it is free
}

func (f *freePlaces) add(place int) {
	f.places = append(f.places, place)
	f.next = append(f.next, len(f.next))
}

// take returns the first free index that is not less than at, else the first free index, else none.
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
	for k < first { // shorten the chain for the next call
		k, f.next[k] = f.next[k], first
	}
	return first
}

// These constants bound, approximately, how many pairs of elements matchEdited compares, and how many of their
// members.
const (
	comparisons       = 1 << 16
	memberComparisons = 1 << 20
)

// matchEdited matches objects that were edited. It pairs a new with a removed object if they share at least half of
// their members. It prefers pairs that share more members, and then pairs in the same gap (see gaps).
func (d *differ) matchEdited(l *list, from []int) {
	gone, fresh := d.unmatched(l, from)
	gapOld, gapNew := gaps(len(l.b), from)
	type likeness struct {
		pair
		shared, apart int
	}
	var alike []likeness
	members := 0
	for _, j := range fresh {
		members += len(l.a[j].members())
	}
	reach := 1 + min(8+comparisons/(1+len(fresh)), memberComparisons/(1+members))
	for place, j := range fresh {
		for _, i := range gone[min(len(gone), max(0, place-reach)):min(len(gone), place+reach)] {
			if n := shared(&l.b[i], &l.a[j]); 2*n >= max(len(l.b[i].members()), len(l.a[j].members())) {
				alike = append(alike, likeness{pair{i, j}, n, max(gapOld[i]-gapNew[j], gapNew[j]-gapOld[i])})
			}
		}
	}
	slices.SortFunc(alike, func(x, y likeness) int {
		return cmp.Or(cmp.Compare(y.shared, x.shared), cmp.Compare(x.apart, y.apart),
			cmp.Compare(x.i, y.i), cmp.Compare(x.j, y.j))
	})
	taken := make([]bool, len(l.b))
	for _, p := range alike {
		if !taken[p.i] && from[p.j] == none {
			from[p.j], taken[p.i] = p.i, true
		}
	}
}

// unmatched lists and opens the objects without a match.
func (d *differ) unmatched(l *list, from []int) (gone, fresh []int) {
	taken := make([]bool, len(l.b))
	for j, i := range from {
		if i != none {
			taken[i] = true
		} else if l.a[j].kind() == jsonraw.Object {
			fresh = append(fresh, j)
		}
	}
	for i := range l.b {
		if !taken[i] && l.b[i].kind() == jsonraw.Object {
			gone = append(gone, i)
		}
	}
	if len(gone) == 0 || len(fresh) == 0 {
		return nil, nil
	}
	for _, i := range gone {
		d.open(l.index(i), &l.b[i])
	}
	for _, j := range fresh {
		d.open(l.index(j), &l.a[j])
	}
	return gone, fresh
}

// shared counts the members with the same name and the same value in both objects. Two empty values count as the same.
func shared(x, y *node) int {
	n := 0
	mx, my := x.members(), y.members()
	for len(mx) > 0 && len(my) > 0 {
		order := compareFirst(mx, my)
		if order == 0 && (same(&mx[0].node, &my[0].node) || mx[0].empty() && my[0].empty()) {
			n++
		}
		if order <= 0 {
			mx = mx[1:]
		}
		if order >= 0 {
			my = my[1:]
		}
	}
	return n
}

// gaps returns the number of the gap that each of the n old elements is in, and the same for each new element. The
// elements that keep their order separate the gaps. So the gap of an element is the number of such elements at or
// before its index.
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

// matchInPlace pairs new with removed elements, in order, between two elements that keep their order. In a list without
// keys, a new element in the place of a removed one counts as an edit of the removed one, because the Go type may know
// too little of the elements to tell them apart. If the type has a field for every member of every object, no guess is
// needed, and such elements count as new.
func matchInPlace(l, part *list, from []int) {
	taken := make([]bool, len(part.b))
	for _, i := range from {
		if i != none {
			taken[i] = true
		}
	}
	gapOld, gapNew := gaps(len(part.b), from)
	knowsAll := sync.OnceValue(func() bool {
		return !slices.ContainsFunc(l.r, func(n node) bool { return l.elem.misses(&n) })
	})
	i := 0
	for j := range from {
		for i < len(part.b) && (taken[i] || gapOld[i] < gapNew[j]) {
			i++
		}
		kind := part.a[j].kind()
		if from[j] == none && i < len(part.b) && gapOld[i] == gapNew[j] && part.b[i].kind() == kind &&
			(kind != jsonraw.Object || !knowsAll()) {
			from[j], i = i, i+1
		}
	}
}
