// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// A field is a member name that a struct has or seems to have. This includes the names of hidden fields, and duplicate
// names, which hide each other. So generated documents use these names too.
type field struct {
	name   string
	typ    reflect.Type
	quoted bool
}

var fieldCache sync.Map

// fieldsOf guesses the fields for the generator. It need not be exact, because sigs.k8s.io/json decides what a document
// means.
func fieldsOf(t reflect.Type) []field {
	if fields, ok := fieldCache.Load(t); ok {
		return fields.([]field)
	}
	var fields []field
	collectFields(t, map[reflect.Type]bool{}, func(f field) { fields = append(fields, f) })
	fieldCache.Store(t, fields)
	return fields
}

func collectFields(t reflect.Type, seen map[reflect.Type]bool, add func(field)) {
	if seen[t] {
		return
	}
	seen[t] = true
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		name = strings.Trim(name, "'")
		switch inner := indirect(f.Type); {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			collectFields(inner, seen, add)
			continue
		case name == "" || tag == "-":
			name = f.Name
		}
		add(field{name, f.Type, strings.Contains(options, "string")})
	}
}

// memberType returns the type of the member with the name, including pointers, or nil.
func memberType(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			if f.name == name {
				return f.typ
			}
		}
	}
	return nil
}

func elemType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		return t.Elem()
	}
	return nil
}

// indirect removes the pointers from a type; nil stays nil.
func indirect(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// opaque reports whether the type decodes its own JSON, or is an interface.
func opaque(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || unmarshalsJSON(t) || unmarshalsText(t)
}

func unmarshalsJSON(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func unmarshalsText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isBytes(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
