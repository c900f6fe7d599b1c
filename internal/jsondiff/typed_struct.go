// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
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

// notObject compares a struct with a value that is not an object. It treats null as the zero struct.
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

// members compares the members that the document has and returns the set of their fields.
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

// field compares a member that the document has.
func (w *walker) field(v reflect.Value, field *shapes.Field) error {
	if field.Omitted(v) {
		return w.omitted(v, field)
	}
	return w.value(v, field.Shape, field.MergeKey)
}

// omitted handles a field that the document has and the encoded value omits.
func (w *walker) omitted(v reflect.Value, field *shapes.Field) error {
	if field.Shape.Kind == shapes.Struct && w.kind() == jsonraw.Object {
		// A struct held by value is omitted when all its known fields are zero. That says nothing
		// about the members that the type does not know.
		return w.structure(v, field.Shape)
	}
	raw := w.bytes(w.part())
	w.skip()
	zero, certain := isZeroText(raw, field.Shape.Kind)
	if !certain || field.OmitZero { // its type may have an IsZero method
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

// absent handles a field that the document lacks. Decoding left the field at zero, so absent adds it if
// it is no longer zero.
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
