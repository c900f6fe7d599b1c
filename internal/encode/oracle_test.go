// SPDX-License-Identifier: Apache-2.0

package encode_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/shape"
)

// errPanic marks a panic of a method of the value.
var errPanic = errors.New("panic")

func guard(f func() ([]byte, error)) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return f()
}

// oracle returns the encoding of v by encoding/json, without escapes for HTML.
func oracle(v reflect.Value) ([]byte, error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	return guard(func() ([]byte, error) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(v.Interface())
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
	})
}

const before = `{"before":1}`

// compare returns an error if Append and encoding/json encode v differently. It also appends the value to a buffer that
// is not empty, which must give the same encoding.
func compare(v reflect.Value) error {
	want, wantErr := oracle(v)
	for range 2 {
		got, gotErr := guard(func() ([]byte, error) {
			return encode.Append([]byte(before), v, shape.Of(v.Type()))
		})
		switch {
		case fmt.Sprint(gotErr) != fmt.Sprint(wantErr):
			return fmt.Errorf("got error %w, want %w", orNone(gotErr), orNone(wantErr))
		case errors.Is(gotErr, errPanic):
			continue
		case gotErr != nil && string(got) != before:
			return fmt.Errorf("the error comes with the output %q", got)
		case gotErr != nil:
			continue
		case !bytes.HasPrefix(got, []byte(before)):
			return fmt.Errorf("the existing bytes became %q", got)
		case !bytes.Equal(got[len(before):], want):
			return firstDifference(got[len(before):], want)
		}
	}
	return nil
}

var errNone = errors.New("none")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// firstDifference returns an error that shows both texts around their first difference.
func firstDifference(got, want []byte) error {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(text []byte) []byte { return text[max(0, i-60):min(len(text), i+60)] }
	return fmt.Errorf("got …%q…\nwant …%q…", around(got), around(want))
}

// compareEverywhere calls compare for the value itself, addressable and not addressable, and for pointers, maps, lists
// and structs that contain it.
func compareEverywhere(v reflect.Value) error {
	t := v.Type()
	places := map[string]reflect.Value{"with an address": v}
	if t.Kind() != reflect.Interface {
		places["without an address"] = reflect.ValueOf(v.Interface())
	}
	byName := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), t))
	byName.SetMapIndex(reflect.ValueOf("k"), v)
	places["in a map"] = byName
	places["in a pointer"] = v.Addr()
	list := reflect.MakeSlice(reflect.SliceOf(t), 2, 2)
	list.Index(0).Set(v)
	places["in a list"] = list
	places["in a list in any"] = reflect.ValueOf([]any{v.Interface(), nil, list.Interface()})
	places["in a pointer in any"] = reflect.ValueOf(map[string]any{"p": v.Addr().Interface(), "": byName.Interface()})
	field := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: t, Tag: `json:"a"`}, {Name: "B", Type: t, Tag: `json:"b,omitempty"`}, {Name: "C", Type: t, Tag: `json:"c,omitzero"`},
		{Name: "D", Type: reflect.PointerTo(t)},
	})).Elem()
	for i := range 3 {
		field.Field(i).Set(v)
	}
	field.Field(3).Set(v.Addr())
	places["in fields"] = field
	places["in fields without an address"] = reflect.ValueOf(field.Interface())
	for place, v := range places {
		if err := compare(v); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	return nil
}
