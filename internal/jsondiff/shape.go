// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A shape describes one place in the document by its Go type: the members, and the merge key that identifies the
// elements of a list. The zero shape describes nothing.
type shape struct {
	typ      reflect.Type
	mergeKey string
	field    bool // the place is a struct's field, not a map entry or a list element
}

func shapeOf(t reflect.Type) shape {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return shape{typ: t}
}

// isInlineStruct reports whether the place is a field that holds a struct by value and encodes it field by
// field. The Go value has such a struct even if the document omits it.
func (s shape) isInlineStruct() bool {
	return s.field && s.typ.Kind() == reflect.Struct && !marshalsItself(s.typ)
}

// isCollection reports whether the place holds a list or a map for which nil and empty mean the
// same.
func (s shape) isCollection() bool {
	return s.typ != nil && (s.typ.Kind() == reflect.Slice || s.typ.Kind() == reflect.Map) && !marshalsItself(s.typ)
}

// same reports whether two documents from one encoder encode equal values. Equal values nearly always have
// equal bytes, but a quantity keeps its unit, and a time keeps its zone.
func (s shape) same(x, y *node) bool {
	if same(x, y) {
		return true
	}
	switch shapeOf(s.typ).typ {
	case reflect.TypeFor[resource.Quantity]():
		return equalAs(x, y, func(p, q *resource.Quantity) bool { return p.Cmp(*q) == 0 })
	case reflect.TypeFor[time.Time]():
		return equalAs(x, y, func(p, q *time.Time) bool { return p.Equal(*q) })
	}
	return false
}

func equalAs[T any](x, y *node, equal func(p, q *T) bool) bool {
	var p, q *T
	return json.Unmarshal(x.raw, &p) == nil && json.Unmarshal(y.raw, &q) == nil && p != nil && q != nil && equal(p, q)
}

// member returns the shape of the named member.
func (s shape) member(name string) shape {
	t := s.typ
	if t == nil {
		return shape{}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case marshalsItself(t):
		return shape{}
	case t.Kind() == reflect.Map:
		return shape{typ: t.Elem()}
	case t.Kind() == reflect.Struct:
		return membersOf(t)[name]
	}
	return shape{}
}

// elem returns the shape of the elements of a list.
func (s shape) elem() shape {
	t := s.typ
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || marshalsItself(t) || t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return shape{}
	}
	return shape{typ: t.Elem()}
}

// misses reports whether r, the document's value at the place, has a member at any depth for which the Go type has no
// field.
func (s shape) misses(r *node) bool {
	c := jsonraw.At(r.raw, 0, 0)
	return s.typ != nil && s.missesNext(&c)
}

// missesNext reads the next value until it finds an unknown member, and reports whether it has found one.
func (s shape) missesNext(c *jsonraw.Cursor) bool {
	t := shapeOf(s.typ).typ
	var more bool
	var err error // stays nil: the value was checked
	switch c.Kind() {
	case jsonraw.Object:
		for more, err = c.OpenObject(); more && err == nil; more, err = c.NextMember() {
			text, _ := c.Name()
			name := string(text)
			known := true
			if t != nil && t.Kind() == reflect.Struct && !marshalsItself(t) {
				_, known = membersOf(t)[name]
			}
			if !known || s.member(name).missesNext(c) {
				return true
			}
		}
	case jsonraw.Array:
		for more, err = c.OpenArray(); more && err == nil; more, err = c.NextElement() {
			if s.elem().missesNext(c) {
				return true
			}
		}
	default:
		err = c.Skip()
	}
	return err != nil
}

var memberCache sync.Map // reflect.Type to map[string]shape

func membersOf(t reflect.Type) map[string]shape {
	if m, ok := memberCache.Load(t); ok {
		return m.(map[string]shape)
	}
	m := map[string]shape{}
	addMembers(m, t, map[reflect.Type]bool{})
	memberCache.Store(t, m)
	return m
}

// addMembers adds the members of a struct type to m. It follows the rules of encoding/json for names and embedding, but
// not exactly. A mistake can make a patch longer, but never wrong.
func addMembers(m map[string]shape, t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	var embedded []reflect.Type
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			if ft := shapeOf(field.Type).typ; ft.Kind() == reflect.Struct {
				embedded = append(embedded, ft)
				continue
			}
		}
		if !field.IsExported() || field.Tag.Get("json") == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		m[name] = shape{typ: field.Type, mergeKey: field.Tag.Get("patchMergeKey"), field: true}
	}
	for _, ft := range embedded {
		inner := map[string]shape{}
		addMembers(inner, ft, seen)
		for name, s := range inner {
			if _, shadowed := m[name]; !shadowed {
				m[name] = s
			}
		}
	}
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func marshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}
