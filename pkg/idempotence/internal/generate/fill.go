// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"slices"
	"strconv"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// fillTraits are the traits of objects that are generated from their schema alone.
var fillTraits = []string{traitOptional, traitEmptyList, traitEmptyMap, traitLong, traitNull, traitEdge, traitDefault}

const (
	traitOptional  = "optional members"
	traitEmptyList = "empty lists"
	traitEmptyMap  = "empty maps"
	traitLong      = "long lists"
	traitNull      = "null members"
	traitEdge      = "values at their limits"
	traitDefault   = "defaults written out"

	deep = 8
)

// A filler fills a custom resource by its schema.
type filler struct {
	*build
	filling float64 // probability of an optional top-level member of a custom resource
	full    bool    // add every member that is allowed
	turn    int     // in a full object, the index of the value that each enum gets
	made    int     // number of optional members added
}

// may returns true with probability p, and then records that the object has the trait.
func (b *build) may(name string, p float64) bool {
	if b.density == 0 || b.Without[name] || !b.chance(p) {
		return false
	}
	b.traits = append(b.traits, name)
	return true
}

// fillMembers adds missing members to o: all required ones, and some optional ones.
func (f *filler) fillMembers(n *node, o object, depth int) bool {
	if n == nil {
		return true
	}
	needed := f.needed(n, o)
	for i := range n.fields {
		m := n.fields[(i+f.turn)%len(n.fields)] // if the number of members is limited, each turn starts at a different one
		if depth == 0 && (m.name == "status" || m.name == "metadata" || m.name == "apiVersion" || m.name == "kind") {
			continue
		}
		if v, there := o[m.name]; there {
			f.fillMore(m.node, v, depth+1)
			continue
		}
		if !m.required && !slices.Contains(needed, m.name) {
			if depth > deep || f.without(n, o, m.name) || !f.may(traitOptional, f.optional(depth)) {
				continue
			}
		}
		v, ok := f.fill(m.node, depth+1)
		if !ok && m.required {
			return false
		}
		if ok {
			o[m.name] = v
		}
	}
	return true
}

// fillMore adds members to an existing value.
func (f *filler) fillMore(n *node, v any, depth int) {
	if n == nil || n.sort == anySort {
		return
	}
	switch v := v.(type) {
	case object:
		if n.sort == objectSort {
			f.fillMembers(n, v, depth)
		}
	case []any:
		for _, e := range v {
			f.fillMore(n.elem, e, depth+1)
		}
	}
}

// fill generates a value. It returns false if it finds no valid one.
func (f *filler) fill(n *node, depth int) (any, bool) {
	switch {
	case n.nullable && !f.full && f.may(traitNull, 0.1):
		return nil, true
	case n.standard != nil && !f.full && f.may(traitDefault, 0.2):
		return tree.Clone(n.standard), true
	case len(n.enum) > 0 && f.full:
		return tree.Clone(n.enum[f.turn%len(n.enum)]), true
	case len(n.enum) > 0:
		return tree.Clone(pick(f.build, n.enum...)), true
	}
	switch n.sort {
	case objectSort:
		o := object{}
		if n.embedded {
			o = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "inner"}}
		}
		ok := f.fillMembers(n, o, depth)
		return o, ok && f.atLeast(n, o, depth)
	case mapSort:
		return f.fillMap(n, depth)
	case listSort:
		return f.fillList(n, depth)
	}
	return f.scalar(n)
}

func (f *filler) fillMap(n *node, depth int) (any, bool) {
	o := object{}
	count := n.limits.size(n.limits.minProperties(), n.limits.maxProperties(), f.between(1, 2))
	if n.limits.minProperties() == 0 && (depth > deep || !f.full && f.may(traitEmptyMap, 0.1)) {
		count = 0
	}
	if count > mostItems {
		return nil, false
	}
	for i := range count {
		v, ok := f.fill(n.elem, depth+1)
		if !ok {
			return o, int64(len(o)) >= n.limits.minProperties()
		}
		o["key-"+strconv.FormatInt(i, 10)] = v
	}
	return o, true
}

// fillList generates a list. Elements are distinct where the schema demands it.
func (f *filler) fillList(n *node, depth int) (any, bool) {
	low, high := n.limits.minItems(), n.limits.maxItems()
	count := n.limits.size(low, high, f.between(1, 3))
	switch {
	case f.full && depth <= deep:
		count = n.limits.size(low, high, 2)
	case low == 0 && (depth > deep || f.may(traitEmptyList, 0.1)):
		count = 0
	case depth <= 3 && f.may(traitLong, 0.02):
		count = n.limits.size(low, high, 30)
	}
	list := []any{}
	if low > mostItems {
		return nil, false
	}
	for tries := count * 4; int64(len(list)) < count && tries > 0; tries-- {
		e, ok := f.fill(n.elem, depth+1)
		if ok && !n.holds(list, e) {
			list = append(list, e)
		}
	}
	return list, int64(len(list)) >= low
}

// holds reports whether the schema forbids this element in the list, because the list already has an element with the
// same identity.
func (n *node) holds(list []any, element any) bool {
	if n.collection != Set && n.collection != Keyed && !n.limits.unique() {
		return false
	}
	id := n.identity(element)
	return slices.ContainsFunc(list, func(e any) bool { return n.identity(e) == id })
}
