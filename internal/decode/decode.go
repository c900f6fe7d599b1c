// SPDX-License-Identifier: Apache-2.0

// Package decode decodes JSON into Go values exactly as the API server does with sigs.k8s.io/json: names are
// case-sensitive, integers stay integers, null means absent, the last of several members with one name wins
// (objects and lists merge), and invalid UTF-8 is replaced.
//
// It decodes in one pass over the bytes, guided by the type's [shape.Shape]:
//
//   - The shape holds, once per type, the names of a struct's members, their fields, and how to read
//     their values. Members mostly come in the order of the fields, so the next field is tried before
//     the name is looked up.
//   - A [jsonraw.Cursor] checks the text and is always before the next value. Members without a field are
//     checked and skipped.
//   - Strings are copied, many into one piece of memory, so nothing decoded shares memory with the
//     document.
//   - A list is allocated with the length of the last list of its type, and copied if that length was
//     wrong.
//   - On request, the pass records an [Outline]: the positions of the values in the document. The diff
//     engine uses it to compare the value with its document.
//   - A type with a decoder of its own receives the bytes of its value. sigs.k8s.io/json decodes the values
//     of types with unusual tags (shape.Opaque).
//
// If this pass refuses a document, or finds a member of a struct twice, sigs.k8s.io/json decodes the document again and
// decides whether it is valid. If it is not valid, Unmarshal returns the pass's own error where that has the path to a
// value, and otherwise the error of sigs.k8s.io/json.
package decode

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/shape"
)

// Unmarshal decodes raw, one JSON value, into the zero value that into points to. An error is an [*Error] or a
// [*jsonraw.SyntaxError].
func Unmarshal(raw []byte, into any) error {
	end, err := At(raw, 0, 0, into, nil)
	if err == nil {
		c := jsonraw.At(raw, end, 0)
		err = c.End()
	}
	return err
}

// At decodes the value at an offset of data and returns the offset of its end. depth is the number of arrays and
// objects around the value. The end is valid even if the value does not fit the type. In all other respects At works
// like [Unmarshal].
//
// If outline is not nil, it becomes the outline of the value, with offsets from the value's start. It is empty if
// sigs.k8s.io/json had to decode the value.
func At(data []byte, offset, depth int, into any, outline *Outline) (end int, err error) {
	v := reflect.ValueOf(into).Elem()
	d := decoders.Get().(*decoder)
	defer d.release()
	d.c.Seek(data, offset, depth)
	if outline != nil {
		_ = d.c.Rest() // skips white space before the value
		d.outlines, d.parts, d.base = true, (*outline)[:0], d.c.Offset()
	}
	err = d.value(v, shape.Of(v.Type()))
	if outline != nil {
		*outline = d.parts
	}
	if err == nil {
		return d.c.Offset(), nil
	}
	if outline != nil {
		*outline = (*outline)[:0]
	}
	c := jsonraw.At(data, offset, depth)
	raw, syntax := c.Value()
	if syntax != nil {
		return 0, syntax
	}
	v.SetZero()
	verdict := kjson.UnmarshalCaseSensitivePreserveInts(bytes.Clone(raw), into) // a type's own decoder may keep its input
	if verdict == nil {
		return c.Offset(), nil
	}
	var fault *Error
	if !errors.As(err, &fault) {
		return c.Offset(), &Error{Offset: c.Offset() - len(raw), Err: verdict}
	}
	slices.Reverse(fault.Path)
	return c.Offset(), fault
}

// A decoder decodes one document.
type decoder struct {
	c          jsonraw.Cursor
	texts      jsonraw.Texts
	quantities map[string]resource.Quantity // cache of parsed quantities

	outlines bool    // record an outline
	parts    Outline // the outline so far
	base     int     // offset of the document's start, which the outline counts from
	where    int     // Part.At of the next value
	plain    bool    // the last string had no escapes
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) release() {
	d.c.Seek(nil, 0, 0)
	d.outlines, d.parts, d.where = false, nil, 0
	decoders.Put(d)
}

// value decodes the next value into v, which is zero and settable.
func (d *decoder) value(v reflect.Value, s *shape.Shape) error {
	if !d.outlines {
		return d.read(v, s)
	}
	part := d.begin(d.c.Kind())
	err := d.read(v, s)
	d.end(part)
	return err
}

// read is like value, but it does not add a Part for the value itself to the outline.
func (d *decoder) read(v reflect.Value, s *shape.Shape) error {
	switch s.Kind {
	case shape.String:
		return d.str(v)
	case shape.Struct:
		return d.structure(v, s)
	case shape.Opaque:
		return d.opaque(v)
	}
	if d.c.Kind() == jsonraw.Null && s.Kind < shape.Time {
		return d.c.Skip()
	}
	switch s.Kind {
	case shape.Bool:
		return d.boolean(v)
	case shape.Int:
		return d.integer(v)
	case shape.Uint:
		return d.unsigned(v)
	case shape.Float:
		return d.float(v)
	case shape.Bytes:
		return d.bytes(v)
	case shape.Any:
		return d.any(v)
	case shape.Map:
		return d.dict(v, s)
	case shape.List:
		return d.list(v, s)
	case shape.Pointer:
		p := reflect.New(s.Elem.Type)
		v.Set(p)
		return d.read(p.Elem(), s.Elem)
	default:
		return d.known(v, s.Kind)
	}
}

func (d *decoder) structure(v reflect.Value, s *shape.Shape) error {
	if d.c.Kind() != jsonraw.Object {
		return d.nullOr("object")
	}
	fields := shape.ValueOf(v)
	var seen shape.FieldSet
	more, err := d.c.OpenObject()
	for i := -1; more && err == nil; {
		if i, more, err = s.Next(&d.c, i+1); !more || err != nil {
			break
		}
		if !seen.Add(i, s) {
			return ErrRepeated // sigs.k8s.io/json merges the values
		}
		field := &s.Fields[i]
		d.where = i
		if err = d.value(fields.Field(field), field.Shape); err != nil {
			return at(field.Name, err)
		}
		more, err = d.c.NextMember()
	}
	return err
}

func (d *decoder) list(v reflect.Value, s *shape.Shape) error {
	if d.c.Kind() != jsonraw.Array {
		return d.nullOr("array")
	}
	elements := s.Elements(v)
	more, err := d.c.OpenArray()
	for more && err == nil {
		if err = d.value(elements.Next(), s.Elem); err != nil {
			return atIndex(elements.Len()-1, err)
		}
		more, err = d.c.NextElement()
	}
	elements.Done()
	return err
}

// opaque lets the type decode the value. The type gets a copy of the bytes, because it may keep them.
func (d *decoder) opaque(v reflect.Value) error {
	raw, err := d.c.Value()
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(append([]byte(nil), raw...), v.Addr().Interface()); err != nil {
		return &Error{Offset: d.c.Offset() - len(raw), Err: err}
	}
	return nil
}
