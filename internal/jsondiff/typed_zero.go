// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"reflect"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// isZeroText reports whether raw, a value in the document, decodes to a Go value that omitempty omits. certain is false
// if the text alone does not decide this.
func isZeroText(raw []byte, kind shapes.Kind) (zero, certain bool) {
	switch {
	case kind == shapes.Opaque || kind >= shapes.Time:
		return false, false
	case jsonraw.IsNull(raw):
		return true, kind != shapes.Struct
	}
	switch kind {
	case shapes.Pointer, shapes.Any:
		return false, true
	case shapes.String, shapes.Bytes:
		return len(raw) == len(`""`), true
	case shapes.Bool:
		return raw[0] == 'f', true
	case shapes.Int, shapes.Uint:
		return len(bytes.Trim(raw, "-0")) == 0, true
	case shapes.Map, shapes.List:
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0, true
	}
	return false, false
}

// encodesNull reports whether v is nil or a pointer to nil. Both encode to null.
func encodesNull(v reflect.Value, s *shapes.Shape) bool {
	switch s.Kind {
	case shapes.Pointer:
		return v.IsNil() || encodesNull(v.Elem(), s.Elem)
	case shapes.Map, shapes.List, shapes.Bytes, shapes.Any:
		return v.IsNil()
	}
	return false
}

// encodesLikeZero reports whether v encodes as the zero value of its type does.
func encodesLikeZero(v reflect.Value) (bool, error) {
	if v.IsZero() {
		return true, nil
	}
	got, err := encodeValue(v)
	if err != nil {
		return false, err
	}
	zero, err := encodeValue(reflect.New(v.Type()).Elem())
	return bytes.Equal(got, zero), err
}
