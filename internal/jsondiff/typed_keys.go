// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"reflect"
	"strconv"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// A listKey reads the merge key of a list's elements. Keys are encoded so that a string and a number
// differ; "" means that the element has no key.
type listKey struct {
	name  string
	index int           // index of the field in the struct
	field *shapes.Field // nil if the elements are map[string]any
}

// keyOf returns the reader of the named key, or false if the elements cannot have it.
func keyOf(elem *shapes.Shape, name string) (listKey, bool) {
	if elem.Kind == shapes.Pointer {
		elem = elem.Elem
	}
	switch {
	case name == "":
	case elem.Kind == shapes.Any:
		return listKey{name: name}, true
	case elem.Kind == shapes.Struct:
		if i := elem.Find([]byte(name)); i >= 0 {
			switch elem.Fields[i].Shape.Kind {
			case shapes.String, shapes.Int:
				return listKey{name: name, index: i, field: &elem.Fields[i]}, true
			}
		}
	}
	return listKey{}, false
}

// ofText encodes a key that is a string.
func ofText[T string | []byte](text T) string { return `"` + string(text) }

// of returns the key of a Go list's element.
func (k listKey) of(v reflect.Value) string {
	if k.field == nil {
		members, _ := v.Interface().(map[string]any)
		if text, ok := members[k.name].(string); ok {
			return ofText(text)
		}
		return ""
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	return k.written(k.field.Of(v))
}

// written encodes the key from v, the value of the key's field. An omitted field means that there is no key.
func (k listKey) written(v reflect.Value) string {
	switch {
	case k.field.Omitted(v):
		return ""
	case v.Kind() == reflect.String:
		return ofText(v.String())
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// missing returns the key of an element of the document that has no member for the key: the key of the zero value.
func (k listKey) missing() string {
	if k.field == nil {
		return ""
	}
	return k.written(reflect.Zero(k.field.Shape.Type))
}

// keyPart returns the part that holds the key of a document's element, or nil. The last of several members
// with the name counts.
func (r *reader) keyPart(k listKey, elem int) (key *decode.Part) {
	if r.parts[elem].Kind != jsonraw.Object {
		return nil
	}
	for i := elem + 1; i < int(r.parts[elem].Next); i = int(r.parts[i].Next) {
		p := &r.parts[i]
		if k.field != nil && int(p.At) == k.index || k.field == nil && string(r.name(p)) == k.name {
			key = p
		}
	}
	return key
}

// keyAt returns the key of the document's element whose part is at index elem.
func (r *reader) keyAt(k listKey, elem int) string {
	p := r.keyPart(k, elem)
	switch {
	case p == nil || p.Kind == jsonraw.Null:
		return k.missing()
	case p.Kind == jsonraw.String:
		return ofText(r.textOf(p))
	case p.Kind == jsonraw.Number && k.field != nil:
		if n, ok := integer(r.bytes(p)); ok {
			return strconv.FormatInt(n, 10)
		}
	}
	return ""
}

// A keyedList is a list whose elements have distinct keys, both in the document and in the Go value.
type keyedList struct {
	before []string // keys of the document's elements
	parts  []int    // the document's elements
	after  []string // keys of the Go value's elements
}

// keyed reads the keys of a list: the field's patchMergeKey, else "name". It returns nil if neither identifies
// the elements.
func (r *reader) keyed(list int, v reflect.Value, s *shapes.Shape, mergeKey string) *keyedList {
	for _, name := range []string{mergeKey, "name"} {
		key, ok := keyOf(s.Elem, name)
		if !ok {
			continue
		}
		l := &keyedList{}
		for i := range v.Len() {
			l.after = append(l.after, key.of(v.Index(i)))
		}
		for i := list + 1; i < int(r.parts[list].Next); i = int(r.parts[i].Next) {
			l.before, l.parts = append(l.before, r.keyAt(key, i)), append(l.parts, i)
		}
		if distinct(l.before) && distinct(l.after) {
			return l
		}
	}
	return nil
}

// distinct reports whether every element has a key and no two share one.
func distinct(keys []string) bool {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if key == "" || seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// origin returns, for each element of the Go list, its index in the document, or none.
func (l *keyedList) origin() []int {
	indexes := make(map[string]int, len(l.before))
	for i, key := range l.before {
		indexes[key] = i
	}
	from := make([]int, len(l.after))
	for j, key := range l.after {
		from[j] = none
		if i, found := indexes[key]; found {
			from[j] = i
		}
	}
	return from
}
