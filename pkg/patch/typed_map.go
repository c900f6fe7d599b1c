// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

func (w *walker) dict(v reflect.Value, s *shapes.Shape) error {
	switch kind := w.kind(); {
	case kind == jsonraw.Null && v.IsNil():
		w.skip()
		return nil
	case kind != jsonraw.Object:
		return w.replace(v)
	case v.IsNil():
		return w.emptied(v)
	}
	if v.CanAddr() {
		switch m := v.Addr().Interface().(type) {
		case *map[string]string:
			return w.table(textTable(*m), len(*m))
		case *corev1.ResourceList:
			return w.table(resourceTable(*m), len(*m))
		case *map[string]any:
			return w.table(looseTable(*m), len(*m))
		}
	}
	return w.table(&anyTable{m: v, elem: s.Elem}, v.Len())
}

// emptied compares a list or a map with nil, which never replaces an empty one.
func (w *walker) emptied(v reflect.Value) error {
	raw := w.bytes(w.part())
	w.skip()
	if zero, _ := isZeroText(raw, shapes.Map); zero {
		return nil
	}
	return w.set(Replace, v)
}

// A table is a Go map with keys that are strings.
type table interface {
	// compare compares the next value of the document with the entry of the key the path ends
	// in. Without such an entry it reads nothing.
	compare(w *walker, key []byte) (found bool, err error)
	keys() []string
	// add adds the entry of the key the path ends in.
	add(w *walker, key string) error
}

// table compares an object with a map of size entries.
func (w *walker) table(t table, size int) error {
	first, end, found, sorted := w.next+1, int(w.part().Next), 0, true
	var last []byte
	for w.next = first; w.next < end; {
		name := w.name(w.part())
		sorted = sorted && (last == nil || bytes.Compare(last, name) < 0)
		last = name
		w.enter(place{index: w.next, is: toEntry})
		has, err := t.compare(w, name)
		switch {
		case err != nil:
			return err
		case has:
			found++
		default:
			w.skip()
			if err := w.op(Remove, nil); err != nil {
				return err
			}
		}
		w.leave()
	}
	if sorted && found == size {
		return nil
	}
	return w.additions(t, first, end, sorted)
}

// additions adds the entries that the object with the parts from first to end lacks, in the
// order of their keys.
func (w *walker) additions(t table, first, end int, sorted bool) error {
	keys := t.keys()
	slices.Sort(keys)
	if sorted {
		keys = w.lacking(keys, first, end)
	} else {
		var err error
		if keys, err = w.lackingUnsorted(keys, first, end); err != nil {
			return err
		}
	}
	for _, key := range keys {
		w.enter(place{name: key})
		if err := t.add(w, key); err != nil {
			return err
		}
		w.leave()
	}
	return nil
}

// lacking leaves of the keys those that the object lacks; its names are sorted, as they are
// where the API server writes a map.
func (w *walker) lacking(keys []string, first, end int) []string {
	left := keys[:0]
	for i := first; i < end; i = int(w.parts[i].Next) {
		name := w.name(&w.parts[i])
		for len(keys) > 0 && keys[0] < string(name) {
			left, keys = append(left, keys[0]), keys[1:]
		}
		if len(keys) > 0 && keys[0] == string(name) {
			keys = keys[1:]
		}
	}
	return append(left, keys...)
}

// lackingUnsorted is lacking for any object; it refuses duplicate names.
func (w *walker) lackingUnsorted(keys []string, first, end int) ([]string, error) {
	names := map[string]bool{}
	for i := first; i < end; i = int(w.parts[i].Next) {
		name := string(w.name(&w.parts[i]))
		if names[name] {
			w.enter(place{name: name})
			return nil, w.located(ErrDuplicateName)
		}
		names[name] = true
	}
	return slices.DeleteFunc(keys, func(key string) bool { return names[key] }), nil
}

func keys[K ~string, V any](m map[K]V) []string {
	list := make([]string, 0, len(m))
	for key := range m {
		list = append(list, string(key))
	}
	return list
}

type textTable map[string]string

func (t textTable) compare(w *walker, key []byte) (bool, error) {
	value, found := t[string(key)]
	if !found {
		return false, nil
	}
	return true, w.text(value)
}

func (t textTable) keys() []string { return keys(t) }

func (t textTable) add(w *walker, key string) error {
	return w.op(Add, appendString(nil, t[key]))
}

type resourceTable corev1.ResourceList

func (t resourceTable) compare(w *walker, key []byte) (bool, error) {
	q, found := t[corev1.ResourceName(key)]
	if !found {
		return false, nil
	}
	if sameQuantity(w.bytes(w.part()), &q) {
		w.skip()
		return true, nil
	}
	v := reflect.ValueOf(q)
	return true, w.documents(v, shapes.Of(v.Type()), "")
}

func (t resourceTable) keys() []string { return keys(t) }

func (t resourceTable) add(w *walker, key string) error {
	return w.set(Add, reflect.ValueOf(t[corev1.ResourceName(key)]))
}

type looseTable map[string]any

func (t looseTable) compare(w *walker, key []byte) (bool, error) {
	x, found := t[string(key)]
	if !found {
		return false, nil
	}
	return true, w.loose(x)
}

func (t looseTable) keys() []string { return keys(t) }

func (t looseTable) add(w *walker, key string) error {
	x := t[key]
	return w.set(Add, reflect.ValueOf(&x).Elem())
}

// anyTable is a map of any other type.
type anyTable struct {
	m    reflect.Value
	elem *shapes.Shape
}

func (t *anyTable) at(key string) reflect.Value {
	return t.m.MapIndex(reflect.ValueOf(key).Convert(t.m.Type().Key()))
}

func (t *anyTable) compare(w *walker, key []byte) (bool, error) {
	v := t.at(string(key))
	if !v.IsValid() {
		return false, nil
	}
	return true, w.value(v, t.elem, "")
}

func (t *anyTable) keys() (list []string) {
	for _, key := range t.m.MapKeys() {
		list = append(list, key.String())
	}
	return list
}

func (t *anyTable) add(w *walker, key string) error { return w.set(Add, t.at(key)) }
