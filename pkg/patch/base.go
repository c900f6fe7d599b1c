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
// document the values are, so that [Base.Diff] need not read it again: that makes it cost about
// half of what [Diff] does, and much less where the Go type names a few members only.
//
// The zero value is ready, and a Base can be used for one document after the other, to use its
// memory again. It is not safe for concurrent use.
type Base struct {
	raw     []byte
	shape   *shapes.Shape // of the value that was decoded; nil where there is no outline
	outline decode.Outline
}

// Decode decodes the JSON value that begins at an offset of data, inside depth arrays and
// objects (0 and 0 for a whole document), into the zero value that into points to, and returns the
// offset of its end. It decodes as the API server does, with the rules of sigs.k8s.io/json: names
// are case-sensitive, unknown members are ignored, of duplicate names the last one counts.
//
// The base keeps data, which must not change before the last call of Diff; the decoded value
// shares no memory with it. After an error the base is of no use.
func (b *Base) Decode(data []byte, offset, depth int, into any) (end int, err error) {
	b.raw, b.shape = nil, nil
	if end, err = decode.At(data, offset, depth, into, &b.outline); err != nil {
		return end, err
	}
	c := jsonraw.At(data[:end], offset, depth)
	b.raw = c.Rest()
	if len(b.outline) > 0 {
		b.shape = shapes.Of(reflect.TypeOf(into).Elem())
	}
	return end, nil
}

// Diff returns what [Diff] does for the document and after, a pointer to the decoded value as
// it is now, or to another one.
func (b *Base) Diff(after any) (Patch, error) {
	v := reflect.ValueOf(after)
	switch {
	case !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil():
		return nil, errors.New("there is no value to compare with: after is nil")
	case v.Kind() == reflect.Pointer:
		v = v.Elem()
	default: // methods of a pointer count
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		v = copied
	}
	if v.Kind() == reflect.Map && v.IsNil() {
		return nil, errors.New("there is no object to compare with: after is a nil map")
	}
	if c := jsonraw.NewCursor(b.raw); c.Kind() != jsonraw.Object {
		return nil, &Error{Err: fmt.Errorf("want an object, got %s", c.Kind())}
	}
	s := shapes.Of(v.Type())
	if s != b.shape {
		if err := b.outline.Scan(b.raw, s); err != nil {
			b.shape = nil
			return nil, unreadable(err)
		}
		b.shape = s
	}
	return walk(b.raw, b.outline, v, s)
}

// unreadable makes an [*Error] of what is wrong with a document.
func unreadable(err error) error {
	var fault *decode.Error
	if !errors.As(err, &fault) {
		return err
	}
	cause := fault.Err
	if errors.Is(cause, decode.ErrRepeated) {
		cause = ErrDuplicateName
	}
	return &Error{Pointer: Pointer(decode.Pointer(fault.Path)), Err: cause}
}
