// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"errors"
	"reflect"
	"slices"
	"unicode/utf8"

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
	if done, err := w.entries(tableOf(v, s), v.Len()); done {
		return err
	}
	return w.documents(v, s, "")
}

// entries compares an object with a map of size entries. It reports false and changes nothing if the map has
// odd keys (see errOddKeys).
func (w *walker) entries(t table, size int) (done bool, err error) {
	start, ops, depth := w.next, len(w.ops), len(w.path)
	err = w.table(t, size)
	if err == errOddKeys { //nolint:errorlint // never wrapped
		w.next, w.ops, w.path = start, w.ops[:ops], w.path[:depth]
		return false, nil
	}
	return true, err
}

func tableOf(v reflect.Value, s *shapes.Shape) table {
	if v.CanAddr() {
		switch m := v.Addr().Interface().(type) {
		case *map[string]string:
			return textTable(*m)
		case *corev1.ResourceList:
			return resourceTable(*m)
		case *map[string]any:
			return looseTable(*m)
		}
	}
	return &anyTable{m: v, elem: s.Elem}
}

// A table is a Go map with string keys.
type table interface {
	// compare compares the next value of the document with the entry whose key ends the path. It
	// reads nothing if there is no such entry.
	compare(w *walker, key []byte) (found bool, err error)
	keys() []string
	// add adds the entry whose key ends the path.
	add(w *walker, key string) error
}

// errOddKeys reports map keys that are not UTF-8: their encoding may equal that of another key.
var errOddKeys = errors.New("a key is not UTF-8")

// table is like entries, but it returns errOddKeys to its caller.
func (w *walker) table(t table, size int) error {
	names := w.namesOf(w.next)
	defer w.forget(&names)
	ops, found, end := len(w.ops), 0, int(w.part().Next)
	w.next++
	for i := 0; w.next < end; i++ {
		if names.shadowed[w.next] { // the last of several members with one name counts
			w.skip()
			continue
		}
		var name []byte
		if names.inOrder {
			name = names.sorted[i].name
		} else {
			name = w.name(w.part())
		}
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
	if found < size || len(w.ops) > ops {
		return w.change(t, &names, found < size)
	}
	return nil
}

// change checks the keys of both sides. Then, if lacks is set, it adds the entries that the object lacks, in the order
// of their keys. It fails for a duplicate name in the object, and returns errOddKeys for a key that is not UTF-8.
func (w *walker) change(t table, names *nameList, lacks bool) error {
	if err := w.differs(); err != nil { // the object may belong to a removed element
		return err
	}
	if names.repeated != nil {
		w.enter(place{name: string(names.repeated)})
		return w.located(ErrDuplicateName)
	}
	keys := t.keys()
	if slices.ContainsFunc(keys, func(key string) bool { return !utf8.ValidString(key) }) {
		return errOddKeys
	}
	if !lacks {
		return nil
	}
	slices.Sort(keys)
	for i, n := 0, 0; i < len(keys); i++ {
		for n < len(names.sorted) && string(names.sorted[n].name) < keys[i] {
			n++
		}
		if n < len(names.sorted) && string(names.sorted[n].name) == keys[i] {
			continue
		}
		w.enter(place{name: keys[i]})
		if err := t.add(w, keys[i]); err != nil {
			return err
		}
		w.leave()
	}
	return nil
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
	return w.op(Add, jsonraw.AppendString(nil, t[key]))
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

// anyTable is a map with a value type for which there is no other table.
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
