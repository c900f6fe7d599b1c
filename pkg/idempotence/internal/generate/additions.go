// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// An Addition is a value that another party could add to an object: an element of a list or a member of a
// map.
type Addition struct {
	// At is the path of the list or map, which may not exist yet.
	At tree.Path
	// Name is the name of a map's member, "" for a list element.
	Name  string
	Value any
}

// Apply returns the object with the addition. An element goes to the end of its list. The result shares unchanged parts
// with obj.
func (a Addition) Apply(obj map[string]any) (map[string]any, bool) {
	var out any
	var ok bool
	if a.Name != "" {
		out, ok = tree.Put(obj, append(slices.Clone(a.At), tree.Step{Name: a.Name}), a.Value)
	} else {
		out, ok = tree.Insert(obj, a.At, -1, a.Value)
	}
	o, _ := out.(object)
	return o, ok
}

// Places returns the sorted paths at which another party could add a value to an object. They are existing lists and
// maps, and missing ones whose parent exists.
func (g *Generator) Places(obj map[string]any) []tree.Path {
	var out []tree.Path
	g.visit(obj, nil, func(p *place) { out = append(out, p.path) })
	return out
}

// Addition returns a valid addition to the list or map at the path at, which is one of the [Generator.Places]. It returns
// false if at is not one of them, or if no attempt gives a valid object.
func (g *Generator) Addition(r *rand.Rand, obj map[string]any, at tree.Path) (Addition, bool) {
	var found *place
	g.visit(obj, at, func(p *place) {
		if found == nil && slices.Equal(p.path, at) {
			found = p
		}
	})
	if found == nil {
		return Addition{}, false
	}
	f := &filler{build: &build{Generator: g, r: r, density: 0.2}}
	for range attempts {
		a, ok := found.make(f)
		if !ok {
			continue
		}
		if with, ok := a.Apply(obj); ok && g.Schema.valid(with) {
			return a, true
		}
	}
	return Addition{}, false
}

// A place is a list or a map in an object, to which another party may add.
type place struct {
	path   tree.Path
	node   *node
	holder object
	name   string
	typ    reflect.Type // of holder
}

// visit calls f with each place. If to is not nil, it visits only the places on that path.
func (g *Generator) visit(obj object, to tree.Path, f func(*place)) {
	w := walker{f, to}
	w.object(g.Schema.root, obj, place{})
}

type walker struct {
	f  func(*place)
	to tree.Path
}

// object visits the members of o, which is the value of the place.
func (w *walker) object(n *node, o object, at place) {
	if n == nil || n.sort != objectSort {
		return
	}
	at.holder, at.typ = o, n.typ
	for _, m := range n.fields {
		if len(at.path) == 0 && m.name == "status" || m.name == "managedFields" {
			continue
		}
		inner := at
		inner.path, inner.node, inner.name = at.path.Member(m.name), m.node, m.name
		w.member(&inner, o[m.name])
	}
}

func (w *walker) member(p *place, v any) {
	if w.to != nil && !w.to.HasPrefix(p.path) {
		return
	}
	if w.offers(p, v) {
		twin := *p
		w.f(&twin)
	}
	switch v := v.(type) {
	case object:
		switch p.node.sort {
		case objectSort:
			w.object(p.node, v, *p)
		case mapSort:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if o, ok := v[name].(object); ok {
					inner := *p
					inner.path = p.path.Member(name)
					w.object(p.node.elem, o, inner)
				}
			}
		}
	case []any:
		w.elements(p, v)
	}
}

// elements visits the elements of a list. It numbers elements with equal keys, so that their paths differ.
func (w *walker) elements(p *place, list []any) {
	if p.node.elem == nil || p.node.elem.sort != objectSort {
		return
	}
	seen := map[string]int{}
	for _, e := range list {
		o, ok := e.(object)
		if !ok {
			continue
		}
		key := tree.Identity(p.path, e)
		inner := *p
		inner.path = p.path.Element(key, seen[key])
		seen[key]++
		w.object(p.node.elem, o, inner)
	}
}

// offers reports whether another party may add to the place.
func (w *walker) offers(p *place, v any) bool {
	switch v.(type) {
	case nil, object, []any:
	default:
		return false
	}
	if _, ok := adders[memberOf{p.typ, p.name}]; ok {
		// The metadata of a template has labels and annotations only.
		return p.typ != metaType || len(p.path) == 2 || p.node.sort == mapSort
	}
	return !isBuiltIn(p.typ) && (p.node.sort == mapSort || p.node.sort == listSort)
}

// make returns an addition that the schema allows at the place.
func (p *place) make(f *filler) (Addition, bool) {
	a := Addition{At: p.path}
	if add, ok := adders[memberOf{p.typ, p.name}]; ok {
		a.Name, a.Value, ok = add(f.build, p.holder)
		return a, ok
	}
	if p.node.sort == mapSort {
		m, _ := p.holder[p.name].(object)
		v, ok := f.fill(p.node.elem, 4)
		a.Name, a.Value = f.fresh(func(name string) bool { _, taken := m[name]; return taken }, "stranger", "z", "key-0"), v
		return a, ok && int64(len(m)) < p.node.limits.maxProperties()
	}
	list := listOf(p.holder, p.name)
	for range 2 * attempts {
		v, ok := f.fill(p.node.elem, 4)
		f.freshKey(p.node, list, v)
		if ok && !p.node.holds(list, v) && int64(len(list)) < p.node.limits.maxItems() {
			a.Value = v
			return a, true
		}
	}
	return a, false
}

// freshKey gives v a new key if another element of the list has the same keys. It changes the first key that can have
// any text.
func (b *build) freshKey(n *node, list []any, v any) {
	o, ok := v.(object)
	if !ok || n.collection != Keyed || !n.holds(list, v) {
		return
	}
	for _, key := range n.keys {
		m := n.elem.member(key)
		if m == nil || m.sort != textSort || len(m.enum) > 0 || m.limits != nil && (m.limits.pattern != nil || m.limits.format != "") {
			continue
		}
		o[key] = b.fresh(func(name string) bool { o[key] = name; return n.holds(list, o) }, "stranger", "z")
		return
	}
}
