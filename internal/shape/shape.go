// SPDX-License-Identifier: Apache-2.0

// Package shape describes how the values of a Go type are encoded in JSON: the members of a struct, the elements of
// a list, and the types with an encoding of their own.
//
// A [Shape] is compiled once per type, by the rules that encoding/json and sigs.k8s.io/json share. The decoder, the
// encoder and the diff engine use it. A type that a shape cannot describe exactly is [Opaque]: only the type's
// methods or those libraries can encode it.
package shape

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A Kind is the way in which a value is decoded, encoded and compared.
type Kind uint8

// The kinds. A value that fits no other kind is Opaque.
const (
	Opaque Kind = iota
	Bool
	Int
	Uint
	Float
	String
	Bytes // []byte: a string in base64
	Any   // an interface without methods
	Struct
	Map // with string keys
	List
	Pointer
	Time         // metav1.Time
	Quantity     // resource.Quantity
	IntOrString  // intstr.IntOrString
	RawExtension // runtime.RawExtension
	FieldsV1     // metav1.FieldsV1
)

// A Shape describes one Go type. It is immutable and safe for concurrent use.
type Shape struct {
	Type reflect.Type
	Kind Kind
	// Fields are the members of a Struct in the order of encoding/json.
	Fields []Field
	// Elem is the shape of a Map's values, a List's elements, or a Pointer's target.
	Elem *Shape

	names   jsonraw.Names // the names of Fields
	scratch sync.Pool     // scratch lists, as *reflect.Value
	usual   atomic.Int32  // length of the last List
}

var (
	shapes    sync.Map // reflect.Type to *Shape
	compiling sync.Mutex
)

// Of returns the shape of a type.
func Of(t reflect.Type) *Shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*Shape)
	}
	compiling.Lock()
	defer compiling.Unlock()
	c := compiler{}
	s := c.shape(t)
	for t, s := range c { // all at once, because recursive types are complete only now
		shapes.LoadOrStore(t, s)
	}
	return s
}

// A compiler holds the shapes of one call of Of, including unfinished ones.
type compiler map[reflect.Type]*Shape

func (c compiler) shape(t reflect.Type) *Shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*Shape)
	}
	if s, ok := c[t]; ok {
		return s
	}
	s := &Shape{Type: t, Kind: kindOf(t)}
	c[t] = s
	switch s.Kind {
	case Struct:
		c.fill(s)
	case Map, List, Pointer:
		s.Elem = c.shape(t.Elem())
		if hidesMethods(t.Elem()) {
			s.Kind = Opaque
		}
	}
	return s
}

// known maps types that encode themselves to their kinds. This module decodes and encodes these types without their
// methods.
var known = map[reflect.Type]Kind{
	reflect.TypeFor[metav1.Time]():          Time,
	reflect.TypeFor[resource.Quantity]():    Quantity,
	reflect.TypeFor[intstr.IntOrString]():   IntOrString,
	reflect.TypeFor[runtime.RawExtension](): RawExtension,
	reflect.TypeFor[metav1.FieldsV1]():      FieldsV1,
}

func kindOf(t reflect.Type) Kind {
	if k, ok := known[t]; ok {
		return k
	}
	if codesItself(t) || t == reflect.TypeFor[json.Number]() {
		return Opaque
	}
	switch t.Kind() {
	case reflect.Bool:
		return Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Int
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return Uint
	case reflect.Float32, reflect.Float64:
		return Float
	case reflect.String:
		return String
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return Any
		}
	case reflect.Struct:
		return Struct
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !codesItself(t.Key()) {
			return Map
		}
	case reflect.Slice:
		switch {
		case t.Elem().Kind() != reflect.Uint8:
			return List
		case t.Elem() == reflect.TypeFor[byte]():
			return Bytes
		}
	case reflect.Pointer:
		return Pointer
	}
	return Opaque
}

var codecs = []reflect.Type{
	reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](),
}

// codesItself reports whether a type, or a pointer to it, has a method that encoding/json calls to decode or
// encode it. For a pointer type, the type that it points to is checked instead.
func codesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	for _, codec := range codecs {
		if reflect.PointerTo(t).Implements(codec) {
			return true
		}
	}
	return false
}

// hidesMethods reports whether encoding/json ignores the methods with which a type decodes or encodes itself.
// encoding/json does not call the pointer methods of unnamed types.
func hidesMethods(t reflect.Type) bool { return t.Name() == "" && codesItself(t) }
