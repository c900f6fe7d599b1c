// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"reflect"
	"slices"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// list compares element by element as long as they are the same ones, which they nearly always
// are. Otherwise keys tell which element is which, or else the contents do.
func (w *walker) list(v reflect.Value, s *shapes.Shape, mergeKey string) error {
	switch {
	case w.isNull() && v.IsNil():
		return w.skip()
	case w.c.Kind() != jsonraw.Array:
		return w.replace(v)
	case v.IsNil():
		return w.emptied(v)
	}
	start, ops, depth := w.c.Offset(), len(w.ops), len(w.path)
	n, inStep := w.lockstep(v, s, mergeKey)
	if inStep && n <= v.Len() {
		switch {
		case n == 0 && v.Len() > 0:
			return w.set(Replace, v)
		case len(w.ops) == ops:
			return w.append(v, n)
		}
	}
	if err := w.differs(); err != nil {
		return err
	}
	keyed, err := w.keyed(start, v, s, mergeKey)
	if err != nil {
		return err
	}
	if keyed != nil && inStep && keyed.inPlace() {
		return w.append(v, n)
	}
	w.ops, w.path = w.ops[:ops], w.path[:depth]
	w.resume(start)
	if keyed == nil {
		return w.documents(v, s, mergeKey)
	}
	if err := w.rearrange(keyed, v, s); err != nil {
		return err
	}
	w.resume(keyed.end)
	return nil
}

// lockstep compares elements of one index. It returns how many the document has, or false as
// soon as two are not the same element: they differ, and so do their keys, if they have any.
func (w *walker) lockstep(v reflect.Value, s *shapes.Shape, mergeKey string) (n int, inStep bool) {
	depth, assumed := len(w.path), len(w.assumed)
	more, err := w.c.OpenArray()
	for ; more && err == nil; n++ {
		if n >= v.Len() {
			err = w.c.Skip()
		} else {
			elem := v.Index(n)
			w.enter(place{index: n, is: toElement})
			w.assume(assumption{offset: w.c.Offset(), elem: elem, shape: s.Elem, mergeKey: mergeKey})
			err = w.value(elem, s.Elem, "")
			w.path, w.assumed = w.path[:depth], w.assumed[:assumed]
			w.sure = min(w.sure, assumed)
		}
		if err == nil {
			more, err = w.c.NextElement()
		}
	}
	return n, err == nil
}

// An assumption is that the element of the document at an offset is the one that the Go list has
// at the same index.
type assumption struct {
	offset   int
	elem     reflect.Value
	shape    *shapes.Shape
	mergeKey string
}

var errOtherElement = errors.New("the element of that index is another one")

func (w *walker) assume(a assumption) { w.assumed = append(w.assumed, a) }

// differs is called before a difference is written. As long as there is none, the elements that
// the path goes through are the same ones; now their keys have to say so.
func (w *walker) differs() error {
	for ; w.sure < len(w.assumed); w.sure++ {
		if !w.assumed[w.sure].holds(w.raw) {
			return errOtherElement
		}
	}
	return nil
}

// holds reports whether both elements have a key, and the same one.
func (a *assumption) holds(raw []byte) bool {
	key, keyed := keyOf(a.shape, a.mergeKey)
	if !keyed {
		key, keyed = keyOf(a.shape, "name")
	}
	return keyed && key.same(jsonraw.At(raw, a.offset, 0), a.elem)
}

// append adds the elements from n on.
func (w *walker) append(v reflect.Value, n int) error {
	for ; n < v.Len(); n++ {
		w.enter(place{index: n, is: toElement})
		if err := w.set(Add, v.Index(n)); err != nil {
			return err
		}
		w.leave()
	}
	return nil
}

// rearrange brings the elements of the document into the order of the Go list, and then
// compares them where they are.
func (w *walker) rearrange(l *keyedList, v reflect.Value, s *shapes.Shape) error {
	from := l.origin()
	if !slices.ContainsFunc(from, func(i int) bool { return i != none }) {
		return w.set(Replace, v) // all of it is new
	}
	added := make([]node, len(from))
	for j, i := range from {
		if i == none {
			raw, err := encodeValue(v.Index(j))
			if err != nil {
				return err
			}
			added[j] = node{raw: raw}
		}
	}
	d := differ{ops: w.ops}
	d.reorder(&list{at: w.pointer(), a: added}, len(l.before), from)
	w.ops = d.ops
	for j, i := range from {
		if i == none {
			continue
		}
		w.enter(place{index: j, is: toElement})
		w.resume(l.offsets[i])
		if err := w.value(v.Index(j), s.Elem, ""); err != nil {
			return err
		}
		w.leave()
	}
	return nil
}
