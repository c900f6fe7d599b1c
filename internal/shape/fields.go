// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"reflect"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A Field is a struct field that is encoded as a member of a JSON object. It is declared in the struct itself or in an
// embedded struct.
type Field struct {
	// Name is the member's name in JSON.
	Name string
	// Index is the path to the field through embedded structs, as in reflect.Value.FieldByIndex.
	Index []int
	Shape *Shape
	// OmitEmpty and OmitZero are the options of the json tag.
	OmitEmpty, OmitZero bool
	// MergeKey is the patchMergeKey tag: the member that identifies the elements of a list.
	MergeKey string

	isZero func(reflect.Value) bool
}

// Of returns the field in v, a value of the struct type that the field belongs to.
func (f *Field) Of(v reflect.Value) reflect.Value {
	if len(f.Index) == 1 {
		return v.Field(f.Index[0])
	}
	for _, i := range f.Index {
		v = v.Field(i)
	}
	return v
}

// A Value gives access to the fields of a struct. Access in order is cheapest: an embedded struct is then looked
// up once for all its fields.
type Value struct {
	v     reflect.Value
	inner reflect.Value // v.Field(outer)
	outer int
}

// ValueOf returns a Value for v.
func ValueOf(v reflect.Value) Value { return Value{v: v, outer: -1} }

// Field returns the field f of the struct, as f.Of does.
func (s *Value) Field(f *Field) reflect.Value {
	switch len(f.Index) {
	case 1:
		return s.v.Field(f.Index[0])
	case 2:
		if f.Index[0] != s.outer {
			s.outer, s.inner = f.Index[0], s.v.Field(f.Index[0])
		}
		return s.inner.Field(f.Index[1])
	}
	return f.Of(s.v)
}

// Omitted reports whether encoding/json omits the field with value v.
func (f *Field) Omitted(v reflect.Value) bool {
	return f.OmitEmpty && isEmpty(v) || f.OmitZero && f.isZero(v)
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	case reflect.Bool, reflect.Interface, reflect.Pointer,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64:
		return v.IsZero()
	}
	return false
}

type zeroer interface{ IsZero() bool }

// zeroTest returns the test for omitzero: the type's IsZero method if it has one.
func zeroTest(t reflect.Type) func(reflect.Value) bool {
	switch {
	case t.Kind() == reflect.Interface && t.Implements(reflect.TypeFor[zeroer]()):
		return func(v reflect.Value) bool {
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() || v.Interface().(zeroer).IsZero()
		}
	case t.Kind() == reflect.Pointer && t.Implements(reflect.TypeFor[zeroer]()):
		return func(v reflect.Value) bool { return v.IsNil() || v.Interface().(zeroer).IsZero() }
	case t.Implements(reflect.TypeFor[zeroer]()):
		return func(v reflect.Value) bool { return v.Interface().(zeroer).IsZero() }
	case reflect.PointerTo(t).Implements(reflect.TypeFor[zeroer]()):
		return func(v reflect.Value) bool {
			if !v.CanAddr() {
				c := reflect.New(v.Type()).Elem()
				c.Set(v)
				v = c
			}
			return v.Addr().Interface().(zeroer).IsZero()
		}
	}
	return reflect.Value.IsZero
}

// Find returns the index in Fields of the named member, or -1.
func (s *Shape) Find(name []byte) int { return s.names.Find(name) }

// Next moves c to the next member that has a field and returns the field's index in Fields. next is the previous result
// plus one, see [jsonraw.Names.Next].
func (s *Shape) Next(c *jsonraw.Cursor, next int) (place int, more bool, err error) {
	return s.names.Next(c, next)
}

// fill finds the fields of a struct. It makes the shape Opaque if a field needs one of the unusual rules of
// encoding/json.
func (c compiler) fill(s *Shape) {
	f := fieldFinder{compiler: c, depth: map[string]int{}, simple: true}
	f.add(s.Type, nil)
	if !f.simple {
		s.Kind = Opaque
		return
	}
	var names []string
	for _, field := range f.fields {
		if len(field.Index) > f.depth[field.Name] {
			continue // shadowed by a field at a smaller depth
		}
		names = append(names, field.Name)
		s.Fields = append(s.Fields, field)
	}
	s.names = *jsonraw.NewNames(names...)
}

type fieldFinder struct {
	compiler
	fields []Field
	depth  map[string]int // by name: the depth of its field
	simple bool
}

// add collects the fields of t, an embedded struct at the path index, or the struct itself if index is empty.
func (f *fieldFinder) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		way := append(slices.Clip(index), i)
		switch {
		case field.Anonymous && name == "":
			f.embedded(field, way)
			continue
		case !field.IsExported():
			f.simple = f.simple && !field.Anonymous // an embedded struct with a name is a member
			continue
		case name == "":
			name = field.Name
		}
		f.member(field, name, options, way)
	}
}

func (f *fieldFinder) embedded(field reflect.StructField, way []int) {
	switch {
	case field.Type.Kind() == reflect.Struct:
		f.add(field.Type, way)
	case field.IsExported() || field.Type.Kind() == reflect.Pointer:
		f.simple = false // a nil pointer is allocated on demand; other types are members named after the type
	}
}

func (f *fieldFinder) member(field reflect.StructField, name, options string, way []int) {
	m := Field{Name: name, Index: way, MergeKey: field.Tag.Get("patchMergeKey")}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			m.OmitEmpty = true
		case "omitzero":
			m.OmitZero = true
			m.isZero = zeroTest(field.Type)
		case "", "inline":
		default: // "string" and misspelt options
			f.simple = false
		}
	}
	depth, taken := f.depth[name]
	if !isPlain(name) || taken && depth == len(way) || hidesMethods(field.Type) {
		f.simple = false
		return
	}
	if !taken || len(way) < depth {
		f.depth[name] = len(way)
	}
	m.Shape = f.shape(field.Type)
	f.fields = append(f.fields, m)
}

// isPlain reports whether name has only characters that every reader of json tags allows, and that need no escape in
// JSON.
func isPlain(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '_', b == '.', b == '$', b == '/':
		default:
			return false
		}
	}
	return true
}

// A FieldSet is a set of fields of one struct, by index.
type FieldSet struct {
	first uint64
	rest  []uint64
}

// Add adds field i and reports whether it was missing.
func (f *FieldSet) Add(i int, s *Shape) bool {
	word := &f.first
	if i >= 64 {
		if f.rest == nil {
			f.rest = make([]uint64, (len(s.Fields)-1)/64)
		}
		word = &f.rest[i/64-1]
	}
	bit := uint64(1) << (i % 64)
	isNew := *word&bit == 0
	*word |= bit
	return isNew
}

// Has reports whether the set has field i.
func (f *FieldSet) Has(i int) bool {
	if i < 64 {
		return f.first&(1<<i) != 0
	}
	return f.rest != nil && f.rest[i/64-1]&(1<<(i%64)) != 0
}
