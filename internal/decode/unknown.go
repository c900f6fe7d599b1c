// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"reflect"

	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/shape"
)

// Unknown returns JSON pointers to at most limit members of a document for which t has no field, in the order of
// the document. It decodes nothing. Members of types with a decoder of their own are never reported.
func Unknown(raw []byte, t reflect.Type, limit int) []string {
	u := unknown{c: jsonraw.At(raw, 0, 0), left: limit}
	u.value(shape.Of(t))
	return u.found
}

type unknown struct {
	c     jsonraw.Cursor
	path  []Step
	found []string
	left  int
}

// value looks for unknown members in the next value. It reports whether the scan continues.
func (u *unknown) value(s *shape.Shape) bool {
	for s.Kind == shape.Pointer {
		s = s.Elem
	}
	kind := u.c.Kind()
	switch {
	case kind == jsonraw.Object && s.Kind == shape.Struct:
		return u.members(func(name []byte) bool {
			i := s.Find(name)
			if i < 0 {
				return u.report() && u.c.Skip() == nil
			}
			return u.value(s.Fields[i].Shape)
		})
	case kind == jsonraw.Object && s.Kind == shape.Map:
		return u.members(func([]byte) bool { return u.value(s.Elem) })
	case kind == jsonraw.Array && s.Kind == shape.List:
		return u.elements(s.Elem)
	case s.Kind == shape.Opaque:
		return u.opaque(s.Type)
	default:
		return u.c.Skip() == nil
	}
}

func (u *unknown) members(member func(name []byte) bool) bool {
	more, err := u.c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = u.c.Name(); err != nil {
			break
		}
		u.path = append(u.path, Step{Name: string(name)})
		if !member(name) {
			return false
		}
		u.path = u.path[:len(u.path)-1]
		more, err = u.c.NextMember()
	}
	return err == nil
}

func (u *unknown) elements(elem *shape.Shape) bool {
	more, err := u.c.OpenArray()
	for i := 0; more && err == nil; i++ {
		u.path = append(u.path, Step{Index: i, IsIndex: true})
		if !u.value(elem) {
			return false
		}
		u.path = u.path[:len(u.path)-1]
		more, err = u.c.NextElement()
	}
	return err == nil
}

// opaque looks for unknown members in the next value with sigs.k8s.io/json, which understands unusual tags.
func (u *unknown) opaque(t reflect.Type) bool {
	raw, err := u.c.Value()
	if err != nil {
		return false
	}
	strict, err := kjson.UnmarshalStrict(raw, reflect.New(t).Interface(), kjson.DisallowUnknownFields)
	if err != nil {
		return false
	}
	for _, e := range strict {
		var field kjson.FieldError
		if errors.As(e, &field) {
			u.path = append(u.path, Step{Name: field.FieldPath()})
			if !u.report() {
				return false
			}
			u.path = u.path[:len(u.path)-1]
		}
	}
	return true
}

func (u *unknown) report() bool {
	u.found = append(u.found, Pointer(u.path))
	u.left--
	return u.left > 0
}
