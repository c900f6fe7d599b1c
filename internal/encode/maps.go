// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/internal/shape"
)

func (e *encoder) dict(out []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	switch m := v.Interface().(type) {
	case map[string]string:
		return dictOf(e, out, m, (*encoder).text)
	case map[string]any:
		return dictOf(e, out, m, (*encoder).loose)
	case corev1.ResourceList:
		return dictOf(e, out, m, (*encoder).quantity)
	}
	return e.anyDict(out, v, s)
}

// dictOf encodes a map of one of the most frequent types. It is faster than anyDict, which encodes all others.
func dictOf[M ~map[K]V, K ~string, V any](
	e *encoder, out []byte, m M, write func(*encoder, []byte, V) ([]byte, error),
) ([]byte, error) {
	if m == nil {
		return appendNull(out), nil
	}
	err := e.enter()
	if err != nil {
		return nil, err
	}
	first := len(e.names)
	for name := range m {
		e.names = append(e.names, string(name))
	}
	names := e.names[first:] // stays valid if nested maps reallocate e.names
	slices.Sort(names)
	out = append(out, '{')
	for _, name := range names {
		out = append(appendText(out, name), ':')
		if out, err = write(e, out, m[K(name)]); err != nil {
			return nil, err
		}
		out = append(out, ',')
	}
	clear(e.names[first:])
	e.names = e.names[:first]
	e.leave()
	return end(out, '}'), nil
}

// An entry is the name and the value of one map entry.
type entry struct {
	name  string
	value reflect.Value // not addressable, so encoding/json does not call methods with a pointer receiver
}

func (e *encoder) anyDict(out []byte, v reflect.Value, s *shape.Shape) ([]byte, error) {
	if v.IsNil() {
		return appendNull(out), nil
	}
	err := e.enter()
	if err != nil {
		return nil, err
	}
	first := len(e.entries)
	for i := v.MapRange(); i.Next(); {
		e.entries = append(e.entries, entry{i.Key().String(), i.Value()})
	}
	entries := e.entries[first:]
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	out = append(out, '{')
	for i := range entries {
		out = append(appendText(out, entries[i].name), ':')
		if out, err = e.value(out, entries[i].value, s.Elem); err != nil {
			return nil, err
		}
		out = append(out, ',')
	}
	clear(e.entries[first:])
	e.entries = e.entries[:first]
	e.leave()
	return end(out, '}'), nil
}
