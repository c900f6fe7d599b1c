// SPDX-License-Identifier: Apache-2.0

// Package decodetest compares a JSON decoder with sigs.k8s.io/json, the API server's decoder. [Compare] decodes a document
// with both, [NewCase] generates documents and types, and [Run] compares many cases and shrinks the first that
// differs.
package decodetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	kjson "sigs.k8s.io/json"
)

// Unmarshal is the type of a decoder. It decodes into zero values only.
type Unmarshal func(raw []byte, into any) error

// errPanic marks a panic of a decoder, or of a method that it called.
var errPanic = errors.New("panic")

func (f Unmarshal) decode(raw []byte, t reflect.Type) (v reflect.Value, err error) {
	v = reflect.New(t)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return v, f(raw, v.Interface())
}

// Compare returns how a decoder differs from sigs.k8s.io/json on a document, or nil. Both must accept or both refuse the
// document. The values must be equal (nil and empty lists differ) and have equal encodings (0 and -0 differ). The
// decoder must not change the document, and the value must not share memory with it.
func Compare(unmarshal Unmarshal, t reflect.Type, doc []byte) error {
	_, err := compare(unmarshal, t, doc)
	return err
}

// compare also reports whether sigs.k8s.io/json accepts the document.
func compare(unmarshal Unmarshal, t reflect.Type, doc []byte) (accepted bool, err error) {
	want, wantErr := Unmarshal(kjson.UnmarshalCaseSensitivePreserveInts).decode(bytes.Clone(doc), t)
	input := bytes.Clone(doc)
	got, gotErr := unmarshal.decode(input, t)
	switch {
	case !bytes.Equal(input, doc):
		return false, errors.New("the document was written to")
	case errors.Is(wantErr, errPanic):
		return false, nil // a method of the type panics, so there is no expected result
	case errors.Is(gotErr, errPanic):
		return false, fmt.Errorf("%w, want %w", gotErr, orAccepted(wantErr))
	case (gotErr == nil) != (wantErr == nil):
		return false, fmt.Errorf("got %w, want %w", orAccepted(gotErr), orAccepted(wantErr))
	case gotErr != nil:
		return false, nil
	}
	for i := range input {
		input[i] = '#'
	}
	gotText, gotErr := encode(got)
	wantText, wantErr := encode(want)
	switch {
	case (gotErr == nil) != (wantErr == nil):
		return true, fmt.Errorf("encoding the value: got %w, want %w", orAccepted(gotErr), orAccepted(wantErr))
	case !bytes.Equal(gotText, wantText):
		return true, fmt.Errorf("got a value that encodes as %s", firstDifference(gotText, wantText))
	case !reflect.DeepEqual(got.Interface(), want.Interface()):
		return true, fmt.Errorf("got another value at %s", differentAt(got, want))
	}
	return true, nil
}

var errAccepted = errors.New("a value")

func orAccepted(err error) error {
	if err == nil {
		return errAccepted
	}
	return err
}

func encode(v reflect.Value) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // from a method promoted from a nil embedded pointer
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return json.Marshal(v.Interface())
}

// firstDifference returns the rest of two texts from their first difference.
func firstDifference(got, want []byte) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(text []byte) []byte { return text[max(0, i-60):min(len(text), i+60)] }
	return fmt.Sprintf("…%s…\nwant …%s…", around(got), around(want))
}

// differentAt returns the first place where two values of one type differ.
func differentAt(got, want reflect.Value) string {
	for _, in := range inner(got, want) {
		if !same(in.got, in.want) {
			return in.name + differentAt(in.got, in.want)
		}
	}
	return fmt.Sprintf(": %s, want %s", describe(got), describe(want))
}

type pair struct {
	name      string
	got, want reflect.Value
}

// inner returns pairs of the parts of two values if they have the same structure.
func inner(got, want reflect.Value) (pairs []pair) {
	if !got.IsValid() || !want.IsValid() || got.Type() != want.Type() {
		return nil
	}
	switch got.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !got.IsNil() && !want.IsNil() {
			pairs = append(pairs, pair{"", got.Elem(), want.Elem()})
		}
	case reflect.Struct:
		for i := range got.NumField() {
			pairs = append(pairs, pair{"." + got.Type().Field(i).Name, got.Field(i), want.Field(i)})
		}
	case reflect.Slice, reflect.Array:
		for i := range min(got.Len(), want.Len()) {
			pairs = append(pairs, pair{fmt.Sprintf("[%d]", i), got.Index(i), want.Index(i)})
		}
	case reflect.Map:
		for _, key := range want.MapKeys() {
			pairs = append(pairs, pair{fmt.Sprintf("[%v]", key), got.MapIndex(key), want.MapIndex(key)})
		}
	}
	return pairs
}

// same is reflect.DeepEqual for values in unexported fields.
func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.CanInterface() && b.CanInterface() {
		return reflect.DeepEqual(a.Interface(), b.Interface())
	}
	return describe(a) == describe(b)
}

func describe(v reflect.Value) string {
	if !v.IsValid() {
		return "nothing"
	}
	text := fmt.Sprintf("%#v", v)
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}
