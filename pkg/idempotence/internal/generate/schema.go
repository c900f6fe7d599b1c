// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Schema describes the valid documents of a kind. Only its exported fields can be changed. It is safe for
// concurrent use while they are not changed.
type Schema struct {
	// GVK is written into objects that are generated without a sample.
	GVK schema.GroupVersionKind
	// Cluster is set for cluster-scoped kinds.
	Cluster bool

	root *node
	kind *kind // the rules of a built-in type; nil if the package has none
	// check returns the validation errors of the API server for a custom resource. It is nil for a Go type: its
	// objects are not filled, because struct tags do not say which values are valid.
	check func(obj object) field.ErrorList
}

// A sort is a kind of JSON value.
type sort uint8

const (
	anySort sort = iota
	objectSort
	mapSort
	listSort
	textSort
	integerSort
	numberSort
	booleanSort
	intOrStringSort
)

// A node describes the valid values at one place of a document. The nodes of recursive types are circular.
type node struct {
	sort   sort
	fields []member // of an object, in the order of their names
	elem   *node    // of a list or a map
	typ    reflect.Type

	collection Collection
	keys       []string
	limits     *limits
	enum       []any
	standard   any // the default
	nullable   bool
	// open means that objects may have members that are not among the fields.
	open bool
	// embedded means that objects have apiVersion, kind and metadata.
	embedded bool
}

type member struct {
	name     string
	node     *node
	required bool
}

func (n *node) member(name string) *node {
	if n == nil {
		return nil
	}
	if n.sort == mapSort {
		return n.elem
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].node
		}
	}
	if n.sort == objectSort && n.open {
		return n.elem
	}
	return nil
}

// A Collection says whether a value is a list or a map, and how its elements are identified.
type Collection uint8

// These are the kinds of collection.
const (
	// Single means that there is no list or map at the place, or that the place is unknown.
	Single Collection = iota
	// Atomic lists are owned as a whole: elements have no identity, and their order counts.
	Atomic
	// Set is a list of distinct scalars.
	Set
	// Keyed lists have elements that are identified by some of their members.
	Keyed
	// Map is an object with any member names.
	Map
)

// Keys returns the kind of collection at a path. For a Keyed list it also returns the names of the identifying members,
// such as ["containerPort", "protocol"].
func (s *Schema) Keys(at tree.Path) (Collection, []string) {
	if n := s.at(at); n != nil {
		return n.collection, n.keys
	}
	return Single, nil
}

// Same reports whether two elements of the list at a path have the same keys.
func (s *Schema) Same(list tree.Path, a, b any) bool {
	n := s.at(list)
	return n != nil && n.collection == Keyed && n.identity(a) == n.identity(b)
}

// Numbers returns the names of the members of the object at a path that can be numbers.
func (s *Schema) Numbers(at tree.Path) (names []string) {
	n := s.at(at)
	if n == nil || n.sort != objectSort {
		return nil
	}
	for _, m := range n.fields {
		if m.node.isNumber() {
			names = append(names, m.name)
		}
	}
	return names
}

func (n *node) isNumber() bool {
	switch n.sort {
	case integerSort, numberSort, intOrStringSort:
		return true
	case anySort:
		t := n.typ
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		return t == reflect.TypeFor[intstr.IntOrString]() || t != nil && (t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64)
	}
	return false
}

func (s *Schema) at(p tree.Path) *node {
	n := s.root
	for _, step := range p {
		switch {
		case n == nil:
			return nil
		case step.Element:
			n = n.elem
		default:
			n = n.member(step.Name)
		}
	}
	return n
}

// identity returns the values that identify an element in its list, as text.
func (n *node) identity(element any) string {
	o, ok := element.(object)
	if n.collection != Keyed || !ok {
		return string(tree.Encode(element))
	}
	values := make([]any, len(n.keys))
	for i, key := range n.keys {
		values[i] = o[key]
		if m := n.elem.member(key); values[i] == nil && m != nil {
			values[i] = m.standard
		}
	}
	return string(tree.Encode(values))
}
