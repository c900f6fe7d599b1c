// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Schema tells what a document of a kind may hold. It is immutable once made, but for the fields
// that it exports, and safe for concurrent use.
type Schema struct {
	// GVK is written into objects that are made without a sample. ForType knows that of built-in
	// types and ForCRD that of the resource; set it for others.
	GVK schema.GroupVersionKind
	// Cluster is set for kinds that are in no namespace.
	Cluster bool

	root *node
	kind *kind // of a built-in type; nil if nothing is known of it but its members
	// foreign is set for a built-in type of which no kind is known: it is not filled, since nobody
	// knows what is valid in it.
	foreign bool
	// check returns what the API server would refuse; nil for Go types.
	check func(obj object) field.ErrorList
}

// A sort is a sort of value.
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
	bytesSort
	quantitySort
	intOrStringSort
	timeSort
	microTimeSort
	durationSort
)

// A node tells what one place of a document may hold. Nodes of types that contain themselves are
// circular.
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
	// open objects may have members that are not among the fields.
	open bool
	// embedded objects have apiVersion, kind and metadata.
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

// A Collection says how the values of a place are told apart.
type Collection uint8

// The collections.
const (
	// Single is a place that holds no list and no map, or of which nothing is known.
	Single Collection = iota
	// Atomic lists are owned as a whole: elements have no identity, and their order counts.
	Atomic
	// Set is a list of scalars, each of which is in it at most once.
	Set
	// Keyed lists have elements that are told apart by members.
	Keyed
	// Map is an object with free names.
	Map
)

// Keys returns how the values at a path are told apart, and the names of the members that do it if
// the place holds a Keyed list: ["containerPort", "protocol"].
func (s *Schema) Keys(at tree.Path) (Collection, []string) {
	if n := s.at(at); n != nil {
		return n.collection, n.keys
	}
	return Single, nil
}

// Same reports whether the keys of the list at a path know two elements as one.
func (s *Schema) Same(list tree.Path, a, b any) bool {
	n := s.at(list)
	return n != nil && n.collection == Keyed && n.identity(a) == n.identity(b)
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

// identity is the text of the values that tell an element apart in its list.
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
