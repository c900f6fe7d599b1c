// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"cmp"
	"reflect"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

func (w *walker) structure(v reflect.Value, s *shapes.Shape) error {
	if w.kind() != jsonraw.Object {
		return w.notObject(v)
	}
	fields := shapes.ValueOf(v)
	seen, err := w.members(&fields, s)
	if err != nil {
		return err
	}
	for i := range s.Fields {
		if seen.Has(i) {
			continue
		}
		field := &s.Fields[i]
		if v := fields.Field(field); !v.IsZero() {
			if err := w.absent(v, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// notObject compares a struct with null, which is the zero struct.
func (w *walker) notObject(v reflect.Value) error {
	zero, err := encodesLikeZero(v)
	switch {
	case err != nil:
		return err
	case zero && w.kind() == jsonraw.Null:
		w.skip()
		return nil
	}
	return w.replace(v)
}

// members compares what the document has of a struct and returns which fields that is.
func (w *walker) members(fields *shapes.Value, s *shapes.Shape) (seen shapes.FieldSet, err error) {
	end := int(w.part().Next)
	for w.next++; w.next < end; {
		i := int(w.part().At)
		seen.Add(i, s)
		field := &s.Fields[i]
		v := fields.Field(field)
		if field.Shape.Kind == shapes.String && w.isText(v.String()) {
			continue
		}
		w.enter(place{name: field.Name})
		if err := w.field(v, field); err != nil {
			return seen, err
		}
		w.leave()
	}
	return seen, nil
}

// field compares a field that the document has.
func (w *walker) field(v reflect.Value, field *shapes.Field) error {
	if field.Omitted(v) {
		return w.omitted(v, field)
	}
	return w.value(v, field.Shape, field.MergeKey)
}

// omitted is about a field that the document has, but not what the value encodes to.
func (w *walker) omitted(v reflect.Value, field *shapes.Field) error {
	if field.Shape.Kind == shapes.Struct && w.kind() == jsonraw.Object {
		// A struct held by value is left out when all its known fields are zero: that says
		// nothing about the others.
		return w.structure(v, field.Shape)
	}
	raw := w.bytes(w.part())
	w.skip()
	zero, certain := isZeroText(raw, field.Shape.Kind)
	if !certain || field.OmitZero { // which may have a test of its own
		before := reflect.New(field.Shape.Type)
		if err := decode.Unmarshal(raw, before.Interface()); err != nil {
			return cmp.Or(w.differs(), w.located(err))
		}
		zero = field.Omitted(before.Elem())
	}
	if zero {
		return nil
	}
	return w.op(Remove, nil)
}

// isZeroText reports whether a value of the document decodes to one that omitempty leaves out,
// if that is certain from its text.
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

// absent is about a field that is not zero, but that the document does not have: to the decoder
// it was.
func (w *walker) absent(v reflect.Value, field *shapes.Field) error {
	if field.Omitted(v) || encodesNull(v, field.Shape) {
		return nil
	}
	if kind := field.Shape.Kind; kind == shapes.Struct || kind == shapes.Opaque || kind >= shapes.Time {
		if zero, err := encodesLikeZero(v); err != nil || zero {
			return err
		}
	}
	w.enter(place{name: field.Name})
	defer w.leave()
	return w.set(Add, v)
}

// encodesNull reports whether v is nil or a pointer to a nil, which are one to the document.
func encodesNull(v reflect.Value, s *shapes.Shape) bool {
	switch s.Kind {
	case shapes.Pointer:
		return v.IsNil() || encodesNull(v.Elem(), s.Elem)
	case shapes.Map, shapes.List, shapes.Bytes, shapes.Any:
		return v.IsNil()
	}
	return false
}

// encodesLikeZero reports whether v and the zero value of its type are one to the document.
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
