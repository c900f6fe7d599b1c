// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/shape"
)

func (d *decoder) dict(v reflect.Value, s *shape.Shape) error {
	if d.c.Kind() != jsonraw.Object {
		return d.nullOr("object")
	}
	switch m := v.Addr().Interface().(type) {
	case *map[string]string:
		return d.strings(m)
	case *corev1.ResourceList:
		return d.resources(m)
	case *map[string]any:
		loose, err := d.looseObject()
		*m = loose
		return err
	}
	m := reflect.MakeMap(s.Type)
	v.Set(m)
	key, elem := reflect.New(s.Type.Key()).Elem(), reflect.New(s.Elem.Type).Elem()
	more, err := d.c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = d.entry(); err != nil {
			break
		}
		key.SetString(d.texts.Text(name))
		elem.SetZero()
		if err = d.value(elem, s.Elem); err != nil {
			return at(key.String(), err)
		}
		m.SetMapIndex(key, elem)
		more, err = d.c.NextMember()
	}
	return err
}

// strings reads a map[string]string, the most frequent map type. It is faster than dict.
func (d *decoder) strings(m *map[string]string) error {
	*m = map[string]string{}
	more, err := d.c.OpenObject()
	for more && err == nil {
		var name, value []byte
		if name, err = d.entry(); err != nil {
			break
		}
		part := d.begin(d.c.Kind())
		if d.c.Kind() != jsonraw.String {
			err = d.nullOr("string")
		} else {
			value, d.plain, err = d.c.Text()
		}
		if err != nil {
			return at(string(name), err)
		}
		d.end(part)
		(*m)[d.texts.Text(name)] = d.texts.Text(value)
		more, err = d.c.NextMember()
	}
	return err
}

// resources reads the requests or limits of a container. It is faster than dict.
func (d *decoder) resources(m *corev1.ResourceList) error {
	*m = corev1.ResourceList{}
	more, err := d.c.OpenObject()
	for more && err == nil {
		var name, raw []byte
		if name, err = d.entry(); err != nil {
			break
		}
		part := d.begin(d.c.Kind())
		if raw, err = d.c.Value(); err != nil {
			break
		}
		d.end(part)
		var q resource.Quantity
		if q, err = d.quantity(raw); err != nil {
			return at(string(name), invalid(d.c.Offset()-len(raw), reflect.TypeFor[resource.Quantity]()))
		}
		(*m)[corev1.ResourceName(d.texts.Text(name))] = q
		more, err = d.c.NextMember()
	}
	return err
}

// mostQuantities is the largest number of cached quantities.
const mostQuantities = 128

// quantity parses a quantity, with a cache: most objects have the same few quantities, and a lookup is
// much cheaper than parsing.
func (d *decoder) quantity(raw []byte) (q resource.Quantity, err error) {
	if known, ok := d.quantities[string(raw)]; ok {
		return known.DeepCopy(), nil
	}
	if err = q.UnmarshalJSON(raw); err != nil || len(raw) > mostDigits {
		return q, err
	}
	if d.quantities == nil || len(d.quantities) == mostQuantities {
		d.quantities = make(map[string]resource.Quantity)
	}
	d.quantities[string(raw)] = q.DeepCopy()
	return q, nil
}
