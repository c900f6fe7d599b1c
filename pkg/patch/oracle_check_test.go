// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A checker compares four documents at one place and collects the faults: r is raw, b and a are the encodings of the
// value before and after, x is raw with the patch applied.
type checker struct {
	kept  map[string]bool // sown members found where they belong
	wrong []string
}

func (c *checker) fail(at, format string, args ...any) {
	c.wrong = append(c.wrong, at+": "+fmt.Sprintf(format, args...))
}

// checkDocuments reports what the patch did to parts of raw that it had no business with.
func checkDocuments(r, b, a, x *tree, s place, t *trace) []string {
	c := checker{kept: map[string]bool{}}
	c.object("", r, b, a, x, s, t)
	for name, n := range x.allSown() {
		if !c.kept[name] || n > 1 {
			c.fail("", "%s moved to a place that is not its own, or came back", name)
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
	for _, name := range r.sown() {
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
			c.fail(at, "nothing changed here, yet the document did")
		}
		if r != nil {
			for name := range r.allSown() {
				c.kept[name] = true
			}
		}
	case a == nil && r.is('{') && s.field && !s.pointer() && s.isStruct():
		// A struct held by value is left out when it is zero: that says nothing about
		// members that it does not know.
		if len(r.sown()) > 0 || x != nil {
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
		} else if len(r.elems) == len(b.elems) { // an array may be longer than what fills it
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

// list finds out by the sown members which element of r each element of x is, and compares
// that with what the merge key says or, without a key, with the trace of the edits.
func (c *checker) list(at string, r, b, a, x *tree, s place, t *trace) {
	owner := map[string]int{}
	for i, elem := range r.elems {
		for name := range elem.allSown() {
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
		t = newTrace() // edits do not look inside
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
			i = j // nothing can have taken its place
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
	if wanted != observed && (observed >= 0 || len(r.elems[wanted].sown()) > 0) {
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
	if i < 0 || observed[j] == i || len(r.elems[i].sown()) == 0 {
		return
	}
	like := likeness(b[i], a[j])
	if alone := len(b) == 1 && len(a) == 1; !a[j].is('{') || like < 0 && !alone {
		return // so different that only its place could tell, or without members to know it by
	}
	for k, o := range observed {
		// Another pair may look at least as much like one element.
		if o >= 0 && (o == i || k == j) && likeness(b[o], a[k]) >= like {
			return
		}
	}
	for o, elem := range r.elems {
		if len(elem.sown()) == 0 && likeness(b[o], a[j]) >= like {
			return // it may be this one, which bears no mark
		}
	}
	c.fail(below(at, j), "this is element %d, edited or moved, but its unknown members are gone", i)
}

// alike reports whether a list holds elements that are one to the type and not to the
// document: the reason why Diff may refuse.
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

// likeness counts the members that two elements share; it is negative where they share
// fewer than half.
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

// byKey pairs elements by their merge key, if they have one that tells them apart.
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
