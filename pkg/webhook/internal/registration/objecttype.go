// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckType returns errors for a T that cannot hold an object.
func CheckType[T any](webhook string) error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("the handler takes a Request[%s], but an object decodes only into a struct type", t)
	}
	w := typeWalk{webhook: webhook, root: t, seen: map[reflect.Type]bool{}}
	w.visit(t, "")
	return errors.Join(w.faults...)
}

// CheckKindKnown returns an error for a T that looks like an API type but is not a runtime.Object. The handler for such
// a type would get objects of every kind, as for a projection.
func CheckKindKnown[T any](webhook string) error {
	t := reflect.TypeFor[T]()
	if _, isObject := any(new(T)).(runtime.Object); isObject || !embeds[metav1.TypeMeta](t) || !embeds[metav1.ObjectMeta](t) {
		return nil
	}
	return fmt.Errorf("webhook %s: %s has TypeMeta and ObjectMeta like an API type, but no method DeepCopyObject, so its kind is not known; "+
		"generate the method, or name the kinds with WithKinds, or leave TypeMeta out if this is a projection", webhook, t)
}

// embeds reports whether a type is a struct that embeds M directly.
func embeds[M any](t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	field, found := t.FieldByName(reflect.TypeFor[M]().Name())
	return found && len(field.Index) == 1 && field.Anonymous && field.Type == reflect.TypeFor[M]()
}

// A typeWalk visits a type and the types of its fields and elements, as encoding/json does. It never calls their
// methods, which might panic on a zero value.
type typeWalk struct {
	webhook string
	root    reflect.Type
	seen    map[reflect.Type]bool
	faults  []error
}

// visit checks a type that is found at a path in the root type.
func (w *typeWalk) visit(t reflect.Type, at string) {
	if w.seen[t] || codesItself(t) {
		return
	}
	w.seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			w.field(t.Field(i), at)
		}
	case reflect.Pointer:
		w.visit(t.Elem(), at)
	case reflect.Slice, reflect.Array:
		w.visit(t.Elem(), at+"[]")
	case reflect.Map:
		if !isKey(t.Key()) {
			w.unwritable(t, at)
		}
		w.visit(t.Elem(), at+"[]")
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		delete(w.seen, t) // every occurrence is reported
		w.unwritable(t, at)
	}
}

func (w *typeWalk) field(f reflect.StructField, at string) {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct && f.Type.Kind() != reflect.Pointer) {
		return
	}
	at = strings.TrimPrefix(at+"."+f.Name, ".")
	if name, _, _ := strings.Cut(tag, ","); name == "" && isObjectMeta(f.Type) {
		w.fault("its field %s would be in the wrong place in JSON; give it the tag `json:\"metadata\"`", at)
	}
	w.visit(f.Type, at)
}

func (w *typeWalk) unwritable(t reflect.Type, at string) {
	w.fault("JSON cannot hold its field %s, a %s; give it the tag `json:\"-\"`", at, t)
}

func (w *typeWalk) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.faults = append(w.faults, fmt.Errorf("webhook %s: the handler takes a Request[%s], but %s", w.webhook, w.root, text))
}

func isObjectMeta(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t == reflect.TypeFor[metav1.ObjectMeta]()
}

// codesItself reports whether a type has its own methods for encoding/json.
func codesItself(t reflect.Type) bool {
	for _, codec := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(codec) || reflect.PointerTo(t).Implements(codec) {
			return true
		}
	}
	return false
}

// isKey reports whether a type can be the key of a JSON object.
func isKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return codesItself(t)
}
