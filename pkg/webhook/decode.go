// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/pkg/patch"
)

// decodeObject decodes with the JSON semantics of the API server. An Unstructured is filled
// directly, because its own decoder insists on a kind.
func decodeObject[T any](raw []byte, member string) (*T, error) {
	if raw == nil {
		return nil, nil
	}
	v := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, content(v)); err != nil {
		return nil, undecodable(err, raw, content(v), member)
	}
	return v, nil
}

// content returns what stands for v in JSON: v itself, or the map inside an Unstructured.
func content(v any) any {
	if u, ok := v.(*unstructured.Unstructured); ok {
		return &u.Object
	}
	return v
}

func unknownFields[T any](raw []byte) []string {
	if raw == nil {
		return nil
	}
	strict, err := kjson.UnmarshalStrict(raw, content(new(T)), kjson.DisallowUnknownFields)
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range strict {
		var field kjson.FieldError
		if errors.As(e, &field) {
			paths = append(paths, field.FieldPath())
		}
	}
	return paths
}

// undecodable is the failure of a document that does not fit the type of into.
func undecodable(err error, raw []byte, into any, member string) error {
	l := locator{budget: 4 * len(raw)}
	f := l.locate(fault{typ: reflect.TypeOf(into).Elem(), err: err}, raw)
	text := fmt.Sprintf("cannot decode %s as %s: ", member, reflect.TypeOf(into).Elem())
	if f.at != "" {
		text += f.at.FieldPath() + ": "
	}
	return newFailure(http.StatusBadRequest, text+f.reason(), metav1.StatusCause{
		Type: metav1.CauseTypeFieldValueInvalid, Field: clip(f.at.FieldPath()), Message: f.reason(),
	})
}

// A fault is a value that does not decode into its type.
type fault struct {
	at  patch.Pointer
	typ reflect.Type
	err error
}

// reason says in the words of the document, not of Go, what was wrong. It does not quote the
// value, which may be a secret; a number may tell more.
func (f fault) reason() string {
	var typeErr *json.UnmarshalTypeError
	if errors.As(f.err, &typeErr) {
		return fmt.Sprintf("want %s, got %s", jsonName(typeErr.Type), clip(typeErr.Value))
	}
	return fmt.Sprintf("not a valid %s", f.typ)
}

// A locator finds the innermost value that does not decode into its type on its own. Decoders
// name struct fields without list indices, and custom ones name nothing, so it asks again,
// level by level: on failures only, and for no more bytes than its budget.
type locator struct{ budget int }

func (l *locator) locate(outer fault, raw []byte) fault {
	t := outer.typ
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	found := outer
	try := func(c *jsonraw.Cursor, inner fault) error {
		value, err := c.Value()
		if err != nil || inner.typ == nil || found != outer {
			return err
		}
		if l.budget -= len(value); l.budget < 0 {
			return errors.New("enough")
		}
		inner.err = kjson.UnmarshalCaseSensitivePreserveInts(value, reflect.New(inner.typ).Interface())
		if inner.err != nil {
			found = l.locate(inner, value)
		}
		return nil
	}
	c := jsonraw.NewCursor(raw)
	switch {
	case c.Kind() == jsonraw.Object && (t.Kind() == reflect.Map || t.Kind() == reflect.Struct):
		types := memberTypes(t)
		_ = c.Members(func(name string) error {
			return try(c, fault{at: outer.at.Append(name), typ: types(name)})
		})
	case c.Kind() == jsonraw.Array && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		_ = c.Elements(func(i int) error { return try(c, fault{at: outer.at.Index(i), typ: t.Elem()}) })
	}
	return found
}

func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Bool:
		return "boolean"
	default:
		return t.Kind().String()
	}
}

// memberTypes returns the function that tells the type of the member with a JSON name, or nil.
func memberTypes(t reflect.Type) func(name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return func(string) reflect.Type { return t.Elem() }
	}
	types := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported(), field.Anonymous && tag == "":
			continue
		case tag == "":
			tag = field.Name
		}
		if _, shadowed := types[tag]; !shadowed {
			types[tag] = field.Type
		}
	}
	return func(name string) reflect.Type { return types[name] }
}
