// SPDX-License-Identifier: Apache-2.0

// Package decode reads JSON into Go values exactly as the API server does, which is with
// sigs.k8s.io/json: case-sensitive names, integers kept, null as good as absent, of duplicate
// names the last one (objects and lists merge), invalid UTF-8 replaced.
//
// The plan is one pass over the bytes, guided by the [shape.Shape] of the type:
//
//   - [shape.Shape] tells, once per type, what the members of a struct are called, where their
//     fields are, and how their values are read. Members mostly come in the order of the
//     fields, so the next field is tried before the name is looked up.
//   - A [jsonraw.Cursor] checks the text and stands before the value to read. What the type
//     does not name is checked and skipped.
//   - Strings are copied, many into one piece of memory (texts), so nothing decoded shares
//     memory with the document.
//   - Lists are made for as many elements as the last one of their type had, and copied to one of
//     their size if there were more or less.
//   - Where asked, an [Outline] is written on the way: where in the document the values are. The
//     comparison of a value with its document goes by it.
//   - Types that read themselves are given their bytes. A type whose tags mean something
//     unusual (shape.Opaque) goes to sigs.k8s.io/json as a whole, for these bytes only.
//
// What this pass does not do, it does not guess: a document that it refuses, or that repeats a
// name of a struct, is decoded again by sigs.k8s.io/json, whose verdict and value count.
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

// Unmarshal reads raw, one JSON value, into the zero value that into points to. An error is
// an [*Error] or a [*jsonraw.SyntaxError].
func Unmarshal(raw []byte, into any) error {
	end, err := At(raw, 0, 0, into, nil)
	if err == nil {
		c := jsonraw.At(raw, end, 0)
		err = c.End()
	}
	return err
}

// At reads the value at an offset of data, which is inside depth arrays and objects, and
// returns where it ends. The end is right, if there is one, also when the value does not fit
// the type. See [Unmarshal] for the rest.
//
// If outline is not nil, it is filled with the outline of the value, offsets from where that
// begins; it is left empty where this pass could not read the value by itself.
func At(data []byte, offset, depth int, into any, outline *Outline) (end int, err error) {
	v := reflect.ValueOf(into).Elem()
	d := decoders.Get().(*decoder)
	defer d.release()
	d.c.Seek(data, offset, depth)
	if outline != nil {
		_ = d.c.Rest() // to the value, over white space
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
	verdict := kjson.UnmarshalCaseSensitivePreserveInts(bytes.Clone(raw), into) // types may keep what they read
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

// A decoder reads one document.
type decoder struct {
	c          jsonraw.Cursor
	texts      jsonraw.Texts
	quantities map[string]resource.Quantity // some that were read before

	outlines bool    // whether somebody wants an outline
	parts    Outline // as far as it was read
	base     int     // the offset that its own count from
	where    int     // what Part.At of the next value is
	plain    bool    // whether the last text read stands as it is
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) release() {
	d.c.Seek(nil, 0, 0)
	d.outlines, d.parts, d.where = false, nil, 0
	decoders.Put(d)
}

// value reads the next value into v, which is zero and can be set.
func (d *decoder) value(v reflect.Value, s *shape.Shape) error {
	if !d.outlines {
		return d.read(v, s)
	}
	part := d.begin(d.c.Kind())
	err := d.read(v, s)
	d.end(part)
	return err
}

// read is value without a part of the outline.
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
			return ErrRepeated // sigs.k8s.io/json knows how the values of one name merge
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

// opaque leaves the value to its type. It gets a copy of the bytes, in case it keeps them.
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
