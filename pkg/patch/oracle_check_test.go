// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A checker compares four documents, member by member, and collects the faults: r is raw, b and a are the encodings of
// the value before and after the edits, x is raw with the patch applied. Planted members are members of r that the Go
// type does not know (see future).
type checker struct {
	kept  map[string]bool // planted members that are at their own place
	wrong []string
}

func (c *checker) fail(at, format string, args ...any) {
	c.wrong = append(c.wrong, at+": "+fmt.Sprintf(format, args...))
}

// checkDocuments reports changes of raw that the patch should not have made.
func checkDocuments(r, b, a, x *tree, s place, t *trace) []string {
	c := checker{kept: map[string]bool{}}
	c.object("", r, b, a, x, s, t)
	for name, n := range x.allPlanted() {
		if !c.kept[name] || n > 1 {
			c.fail("", "%s moved to another place, or exists twice", name)
		}
	}
	slices.Sort(c.wrong)
	return c.wrong
}

var nothing = newObject()

func orNothing(n *tree) *tree {
	if n == nil {
		return nothing
	}
	return n
}

func (c *checker) object(at string, r, b, a, x *tree, s place, t *trace) {
	for _, name := range r.planted() {
		c.kept[name] = true
	}
	names := slices.Concat(r.names, b.names, a.names, x.names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c.member(below(at, name), r.kids[name], b.kids[name], a.kids[name], x.kids[name], s.member(name), t.kid(name))
	}
}

func (c *checker) member(at string, r, b, a, x *tree, s place, t *trace) {
	switch {
	case b.same(a) || sameQuantity(b, a, s):
		if !r.equal(x) {
			c.fail(at, "the value did not change here, but the document did")
		}
		if r != nil {
			for name := range r.allPlanted() {
				c.kept[name] = true
			}
		}
	case a == nil && r.is('{') && s.field && !s.pointer() && s.isStruct():
		// A struct that is not a pointer is omitted when it is zero. Its unknown members must stay.
		if len(r.planted()) > 0 || x != nil {
			c.object(at, r, orNothing(b), nothing, orNothing(x), s, t)
		}
	case a == nil:
		if x != nil && !x.null() {
			c.fail(at, "should be gone")
		}
	case r.is('{') && a.is('{') && (b == nil || b.is('{')):
		if !x.is('{') {
			c.fail(at, "should be an object")
			return
		}
		c.object(at, r, orNothing(b), a, x, s, t)
	case r.is('[') && b.is('[') && a.is('['):
		if !x.is('[') || len(x.elems) != len(a.elems) {
			c.fail(at, "should be a list of %d", len(a.elems))
		} else if len(r.elems) == len(b.elems) { // a Go array may be longer than the list that it was decoded from
			c.list(at, r, b, a, x, s, t)
		}
	}
}

func sameQuantity(b, a *tree, s place) bool {
	if indirect(s.typ) != reflect.TypeFor[resource.Quantity]() || !b.is('"') || !a.is('"') {
		return false
	}
	q := resource.MustParse(b.text)
	return q.Cmp(resource.MustParse(a.text)) == 0
}

// list uses the planted members to find the element of r that each element of x comes from. It compares the
// result with the merge key or, without a key, with the trace of the edits.
func (c *checker) list(at string, r, b, a, x *tree, s place, t *trace) {
	owner := map[string]int{}
	for i, elem := range r.elems {
		for name := range elem.allPlanted() {
			owner[name] = i
		}
	}
	observed := make([]int, len(x.elems))
	for j, elem := range x.elems {
		observed[j] = -1
		for k, name := range elem.marks() {
			i, ours := owner[name]
			if !ours || k > 0 && observed[j] != i {
				c.fail(below(at, j), "holds %s of another element", name)
			}
			observed[j] = i
		}
	}
	wanted, keyed := byKey(b.elems, a.elems, s.mergeKey)
	if s.opaque() {
		t = newTrace() // edits replace such lists as a whole
	}
	traces := t.list(len(a.elems))
	for j, i := range observed {
		if keyed {
			c.keyed(below(at, j), wanted[j], i, r)
		} else {
			c.unkeyed(at, j, b.elems, a.elems, observed, r, traces)
		}
		switch {
		case keyed:
			i = wanted[j]
		case a.elems[j].is('[') && inPlace(traces, len(b.elems)):
			i = j // no element was moved, so each list is compared with the one at its index
		}
		if i < 0 {
			continue
		}
		inner := newTrace()
		if traces[j].from == i {
			inner = traces[j]
		}
		c.member(below(at, j), r.elems[i], b.elems[i], a.elems[j], x.elems[j], s.elem(), inner)
	}
}

func inPlace(traces []*trace, n int) bool {
	for j, t := range traces {
		if t.from != j {
			return false
		}
	}
	return len(traces) == n
}

func (c *checker) keyed(at string, wanted, observed int, r *tree) {
	if wanted != observed && (observed >= 0 || len(r.elems[wanted].planted()) > 0) {
		c.fail(at, "by its key this is element %d, by its unknown members element %d", wanted, observed)
	}
}

func (c *checker) unkeyed(at string, j int, b, a []*tree, observed []int, r *tree, traces []*trace) {
	if i := observed[j]; i >= 0 && likeness(b[i], a[j]) < 0 {
		for k, o := range observed[:j] {
			if o > i && likeness(b[o], a[k]) < 0 {
				c.fail(below(at, j), "stands for element %d neither by its members nor by its place", i)
			}
		}
	}
	i := traces[j].from
	if i < 0 || observed[j] == i || len(r.elems[i].planted()) == 0 {
		return
	}
	like := likeness(b[i], a[j])
	if alone := len(b) == 1 && len(a) == 1; !a[j].is('{') || like < 0 && !alone {
		return // it cannot be recognized by its members
	}
	for k, o := range observed {
		// Another pair may be at least as alike.
		if o >= 0 && (o == i || k == j) && likeness(b[o], a[k]) >= like {
			return
		}
	}
	for o, elem := range r.elems {
		if len(elem.planted()) == 0 && likeness(b[o], a[j]) >= like {
			return // it may come from this element, which has no planted members
		}
	}
	c.fail(below(at, j), "this is element %d, edited or moved, but its unknown members are gone", i)
}

// alike reports whether a list holds elements that differ only in members that the type does not know. Diff may
// reject such lists.
func alike(r, b *tree) bool {
	if r == nil || b == nil || len(r.elems) != len(b.elems) {
		return false
	}
	for i, x := range b.elems {
		for k, y := range b.elems[:i] {
			if x.same(y) && !r.elems[i].equal(r.elems[k]) {
				return true
			}
		}
		if alike(r.elems[i], x) {
			return true
		}
	}
	return slices.ContainsFunc(b.names, func(name string) bool { return alike(r.kids[name], b.kids[name]) })
}

const certain = 1 << 30

// likeness returns the number of members that two objects share, or a negative number if they share fewer than half.
// For equal values it returns certain. For other values of one kind it returns 0.
func likeness(x, y *tree) int {
	switch {
	case x.same(y):
		return certain
	case x.kind != y.kind:
		return -1
	case x.kind != '{':
		return 0
	}
	shared := 0
	for name, kid := range x.kids {
		if other := y.kids[name]; kid.same(other) || other != nil && kid.empty() && other.empty() {
			shared++
		}
	}
	if 2*shared < max(len(x.kids), len(y.kids)) {
		return -1
	}
	return shared
}

// byKey returns, for each element of a, the index of the element of b with the same merge key, or -1. It returns false
// if neither mergeKey nor "name" is a distinct key in both lists.
func byKey(b, a []*tree, mergeKey string) ([]int, bool) {
	for _, key := range []string{mergeKey, "name"} {
		old, ok := keys(b, key)
		if _, too := keys(a, key); key == "" || !ok || !too {
			continue
		}
		wanted := make([]int, len(a))
		for j, elem := range a {
			wanted[j] = -1
			if i, found := old[string(elem.kids[key].doc)]; found {
				wanted[j] = i
			}
		}
		return wanted, true
	}
	return nil, false
}

func keys(list []*tree, key string) (map[string]int, bool) {
	places := map[string]int{}
	for i, elem := range list {
		k := elem.kids[key]
		if k == nil {
			return nil, false
		}
		places[string(k.doc)] = i
	}
	return places, len(places) == len(list)
}
