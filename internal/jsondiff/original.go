// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// An Original is a JSON document and the positions of the values in it that have a field in a Go type. It decodes the
// document, and later compares a value with it without reading the document again. This costs little more than half of
// [Diff], and much less for a type with few fields (see BenchmarkOriginal of pkg/patch).
//
// The zero value is ready for use. An Original can be used for one document after another, and reuses its memory. It is
// not safe for concurrent use.
type Original struct {
	raw     []byte
	shape   *shapes.Shape // of the decoded type; nil if outline belongs to no type
	outline decode.Outline
	ops     []Operation // what the last comparison found
}

// Decode decodes the JSON value that begins at an offset of data into the zero value that into points to. It returns
// the offset of the value's end. depth is the number of arrays and objects around the value. A document that stands
// alone has offset 0 and depth 0. The object of an AdmissionReview is decoded while the review is read, so data need
// not end with it. The depth counts towards the limit of nesting.
//
// Decode follows sigs.k8s.io/json, as the API server does: names are case-sensitive, unknown members are
// ignored, and the last of several members with one name wins (objects and lists merge).
//
// It fails with an [*Error] if the value is not JSON or does not fit the type. If it does not fit, the end is
// returned too. After an error the Original holds no document and is ready for another one.
//
// The Original keeps data, which must not change before the last call of Diff. The decoded value shares no
// memory with data.
func (o *Original) Decode(data []byte, offset, depth int, into any) (end int, err error) {
	o.Reset()
	v := reflect.ValueOf(into)
	switch {
	case v.Kind() != reflect.Pointer || v.IsNil():
		return 0, fmt.Errorf("cannot decode into %T: want a pointer that is not nil", into)
	case offset < 0 || offset > len(data):
		return 0, fmt.Errorf("offset %d is not within the %d bytes of data", offset, len(data))
	case depth < 0 || depth > jsonraw.MaxDepth:
		return 0, fmt.Errorf("depth %d is not between 0 and %d", depth, jsonraw.MaxDepth)
	}
	if end, err = decode.At(data, offset, depth, into, &o.outline); err != nil {
		return end, o.undecoded(data[offset:], err, v.Type().Elem())
	}
	c := jsonraw.At(data[:end], offset, depth)
	o.raw = c.Rest()
	if len(o.outline) > 0 {
		o.shape = shapes.Of(v.Type().Elem())
	}
	return end, nil
}

// Reset drops the document. It keeps the memory for the next document.
func (o *Original) Reset() {
	clear(o.ops)
	o.raw, o.shape, o.ops = nil, nil, o.ops[:0]
}

// undecoded returns the error for data that cannot be decoded. The decoder does not say where a syntax
// error is, so data is read again to find the place.
func (o *Original) undecoded(data []byte, err error, t reflect.Type) error {
	c := jsonraw.At(data, 0, 0)
	if len(c.Rest()) == 0 {
		return &Error{Err: errEmpty}
	}
	var syntax *jsonraw.SyntaxError
	if !errors.As(err, &syntax) {
		return unreadable(err)
	}
	again := o.outline.Scan(data, shapes.Of(t))
	if again != nil && again.Error() == err.Error() { // false for a value inside too many arrays and objects
		return unreadable(again)
	}
	return unreadable(err)
}

// Diff compares the document with after as [Diff] does. after points to the decoded value, which may have
// changed since, or to another value. The operations are valid until the next call of any method. Diff fails if
// the last Decode failed or there was none.
func (o *Original) Diff(after any) ([]Operation, error) {
	if o.raw == nil {
		return nil, errors.New("there is no decoded document to compare with")
	}
	return o.diff(after)
}

func (o *Original) diff(after any) ([]Operation, error) {
	v, err := object(after)
	if err != nil {
		return nil, err
	}
	if err := wantObject(o.raw); err != nil {
		return nil, err
	}
	s := shapes.Of(v.Type())
	if s != o.shape {
		if err := o.outline.Scan(o.raw, s); err != nil {
			o.shape = nil
			return nil, unreadable(err)
		}
		o.shape = s
	}
	o.ops, err = walk(o.ops[:0], o.raw, o.outline, v, s)
	if len(o.ops) == 1 && o.ops[0].Path == "" {
		if c := jsonraw.At(o.ops[0].Value, 0, 0); c.Kind() != jsonraw.Object {
			return nil, fmt.Errorf("want an object, but a %T encodes to %s", after, c.Kind().Noun())
		}
	}
	return o.ops, err
}

// object returns the struct or map that after is or points to. It fails for values that never encode to
// an object.
func object(after any) (reflect.Value, error) {
	v := reflect.ValueOf(after)
	inner := v
	for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Interface {
		inner = inner.Elem() // Elem of a nil pointer is invalid
	}
	switch kind := inner.Kind(); {
	case kind == reflect.Invalid:
		return v, errors.New("there is no value to compare with: after is nil")
	case kind == reflect.Slice && inner.Type().Elem().Kind() == reflect.Uint8:
		return v, errors.New("after is bytes: use Documents to compare two documents")
	case kind != reflect.Struct && kind != reflect.Map:
		return v, fmt.Errorf("want a struct, a map or a pointer to one, got after of type %T", after)
	case kind == reflect.Map && inner.IsNil():
		return v, errors.New("there is no object to compare with: after is a nil map")
	}
	if v.Kind() == reflect.Pointer {
		return v.Elem(), nil
	}
	copied := reflect.New(v.Type()).Elem() // addressable, so that methods with a pointer receiver are called
	copied.Set(v)
	return copied, nil
}

func wantObject(raw []byte) error {
	c := jsonraw.At(raw, 0, 0)
	switch kind := c.Kind(); kind {
	case jsonraw.Object:
		return nil
	case jsonraw.Invalid:
		if len(c.Rest()) == 0 {
			return &Error{Err: errEmpty}
		}
		return &Error{Err: c.Skip()}
	default:
		return &Error{Err: fmt.Errorf("want an object, got %s", kind.Noun())}
	}
}

// unreadable returns the decoder's error as an [*Error].
func unreadable(err error) error {
	var fault *decode.Error
	if !errors.As(err, &fault) {
		return &Error{Err: err}
	}
	cause := fault.Err
	if errors.Is(cause, decode.ErrRepeated) {
		cause = ErrDuplicateName
	}
	return &Error{Pointer: decode.Pointer(fault.Path), Err: cause}
}
