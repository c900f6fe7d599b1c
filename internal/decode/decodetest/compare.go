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

	"github.com/google/go-cmp/cmp"
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

// Compare decodes a document into type t with the decoder and with sigs.k8s.io/json. It returns an error if they
// differ. Both must accept or both must refuse the document. The values must be equal (nil and empty lists differ) and
// have equal encodings (0 and -0 differ). The decoder must not change the document, and the value must not share memory
// with it.
func Compare(unmarshal Unmarshal, t reflect.Type, doc []byte) error {
	_, err := compare(unmarshal, t, doc)
	return err
}

// compare does the same as Compare, and also reports whether sigs.k8s.io/json accepts the document.
func compare(unmarshal Unmarshal, t reflect.Type, doc []byte) (accepted bool, err error) {
	want, wantErr := Unmarshal(kjson.UnmarshalCaseSensitivePreserveInts).decode(bytes.Clone(doc), t)
	input := bytes.Clone(doc)
	got, gotErr := unmarshal.decode(input, t)
	switch {
	case !bytes.Equal(input, doc):
		return false, errors.New("the decoder changed the document")
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
		return true, fmt.Errorf("got a value with another encoding (-want +got):\n%s", cmp.Diff(string(wantText), string(gotText)))
	case !reflect.DeepEqual(got.Interface(), want.Interface()):
		return true, fmt.Errorf("got another value: %s", difference(got.Elem(), want.Elem()))
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

// difference describes where two values of one type differ.
func difference(got, want reflect.Value) string {
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(want.Interface(), got.Interface(), all); diff != "" {
		return "(-want +got):\n" + diff
	}
	return fmt.Sprintf("%#v, want %#v", got, want) // cmp calls a type's Equal method, which may ignore the difference
}
