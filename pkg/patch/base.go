// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// A Base is a document that a value was decoded from. It knows from the decoding where in the
// document the values are, so that [Base.Diff] need not read it again: that makes it cost little
// more than half of what [Diff] does, and much less where the Go type names a few members only (see
// BenchmarkBase).
//
// The zero value is ready, and a Base can be used for one document after the other, to use its
// memory again. It is not safe for concurrent use.
type Base struct {
	raw     []byte
	shape   *shapes.Shape // of the value that was decoded; nil where there is no outline
	outline decode.Outline
}

// Decode decodes the JSON value that begins at an offset of data, inside depth arrays and
// objects, into the zero value that into points to, and returns the offset of its end. A document
// of its own is at 0 and 0. An offset and a depth are for a value that is met while something
// around it is read, the object of an AdmissionReview for one (see DecodeInto of pkg/review): it is
// then decoded in the same pass, and data need not end with it. The depth counts towards the limit
// of nesting.
//
// It decodes as the API server does, with the rules of sigs.k8s.io/json: names are case-sensitive,
// unknown members are ignored, of duplicate names the last one counts (objects and lists merge).
//
// It fails with an [*Error] when the value is not JSON or does not fit the type; in the latter case
// the end is returned, too. The base has no document then, and is ready for another one.
//
// The base keeps data, which must not change before the last call of Diff; the decoded value
// shares no memory with it.
func (b *Base) Decode(data []byte, offset, depth int, into any) (end int, err error) {
	b.Reset()
	v := reflect.ValueOf(into)
	switch {
	case v.Kind() != reflect.Pointer || v.IsNil():
		return 0, fmt.Errorf("cannot decode into %T: want a pointer that is not nil", into)
	case offset < 0 || offset > len(data):
		return 0, fmt.Errorf("offset %d is not within the %d bytes of data", offset, len(data))
	case depth < 0 || depth > jsonraw.MaxDepth:
		return 0, fmt.Errorf("depth %d is not between 0 and %d", depth, jsonraw.MaxDepth)
	}
	if end, err = decode.At(data, offset, depth, into, &b.outline); err != nil {
		return end, b.undecoded(data[offset:], err, v.Type().Elem())
	}
	c := jsonraw.At(data[:end], offset, depth)
	b.raw = c.Rest()
	if len(b.outline) > 0 {
		b.shape = shapes.Of(v.Type().Elem())
	}
	return end, nil
}

// Reset forgets the document, and keeps the memory for another one.
func (b *Base) Reset() { b.raw, b.shape = nil, nil }

// undecoded is the error about a text that could not be decoded. Where it stops being JSON the
// decoder tells without the place: that is found by reading it again.
func (b *Base) undecoded(data []byte, err error, t reflect.Type) error {
	c := jsonraw.At(data, 0, 0)
	if len(c.Rest()) == 0 {
		return &Error{Err: errEmpty}
	}
	var syntax *jsonraw.SyntaxError
	if !errors.As(err, &syntax) {
		return unreadable(err)
	}
	again := b.outline.Scan(data, shapes.Of(t))
	if again != nil && again.Error() == err.Error() { // not so inside too many arrays and objects
		return unreadable(again)
	}
	return unreadable(err)
}

// Diff returns what [Diff] does for the document and after, a pointer to the decoded value as
// it is now, or to another one. It fails when no document was decoded, or the last one failed to.
func (b *Base) Diff(after any) (Patch, error) {
	if b.raw == nil {
		return nil, errors.New("nothing was decoded that after could be compared with")
	}
	return b.diff(after)
}

func (b *Base) diff(after any) (Patch, error) {
	v, err := object(after)
	if err != nil {
		return nil, err
	}
	if err := wantObject(b.raw); err != nil {
		return nil, err
	}
	s := shapes.Of(v.Type())
	if s != b.shape {
		if err := b.outline.Scan(b.raw, s); err != nil {
			b.shape = nil
			return nil, unreadable(err)
		}
		b.shape = s
	}
	p, err := walk(b.raw, b.outline, v, s)
	if len(p) == 1 && p[0].Path == "" {
		if c := jsonraw.At(p[0].Value, 0, 0); c.Kind() != jsonraw.Object {
			return nil, fmt.Errorf("want an object, but a %T encodes to %s", after, withArticle(c.Kind()))
		}
	}
	return p, err
}

// object returns the value that after is or points to, where it may be one that encodes to an
// object.
func object(after any) (reflect.Value, error) {
	v := reflect.ValueOf(after)
	inner := v
	for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Interface {
		inner = inner.Elem() // invalid if nil
	}
	switch kind := inner.Kind(); {
	case kind == reflect.Invalid:
		return v, errors.New("there is no value to compare with: after is nil")
	case kind == reflect.Slice && inner.Type().Elem().Kind() == reflect.Uint8:
		return v, errors.New("after is bytes: the difference of two documents is made by Documents")
	case kind != reflect.Struct && kind != reflect.Map:
		return v, fmt.Errorf("want a struct, a map or a pointer to one, got after of type %T", after)
	case kind == reflect.Map && inner.IsNil():
		return v, errors.New("there is no object to compare with: after is a nil map")
	}
	if v.Kind() == reflect.Pointer {
		return v.Elem(), nil
	}
	copied := reflect.New(v.Type()).Elem() // methods of a pointer count
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
		return &Error{Err: fmt.Errorf("want an object, got %s", withArticle(kind))}
	}
}

var errEmpty = errors.New("the document is empty")

func withArticle(kind jsonraw.Kind) string {
	switch kind {
	case jsonraw.Null:
		return "null"
	case jsonraw.Object, jsonraw.Array:
		return "an " + kind.String()
	default:
		return "a " + kind.String()
	}
}

// unreadable makes an [*Error] of what is wrong with a document.
func unreadable(err error) error {
	var fault *decode.Error
	if !errors.As(err, &fault) {
		return &Error{Err: err}
	}
	cause := fault.Err
	if errors.Is(cause, decode.ErrRepeated) {
		cause = ErrDuplicateName
	}
	return &Error{Pointer: Pointer(decode.Pointer(fault.Path)), Err: cause}
}
