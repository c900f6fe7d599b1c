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
	switch kind := w.kind(); {
	case kind == jsonraw.Null && v.IsNil():
		w.skip()
		return nil
	case kind != jsonraw.Array:
		return w.replace(v)
	case v.IsNil():
		return w.emptied(v)
	}
	start, end, ops := w.next, int(w.part().Next), len(w.ops)
	n, inStep, err := w.lockstep(end, v, s, mergeKey)
	switch {
	case err != nil:
		return err
	case inStep && n == 0 && v.Len() > 0:
		return w.set(Replace, v)
	case inStep && n <= v.Len() && len(w.ops) == ops:
		return w.append(v, n)
	}
	if err := w.differs(); err != nil {
		return err
	}
	keyed := w.keyed(start, v, s, mergeKey)
	switch {
	case keyed == nil:
		w.next, w.ops = start, w.ops[:ops]
		return w.documents(v, s, mergeKey)
	case inStep: // by now it is known that what is equal so far is not so by chance
		return w.resize(v, n, ops)
	}
	w.ops = w.ops[:ops]
	err = w.rearrange(keyed, v, s)
	w.next = end
	return err
}

// resize adds or removes elements at the end of a list of n in which all others have their
// place. Removals come before the edits of the others, which were written from operation ops on.
func (w *walker) resize(v reflect.Value, n, ops int) error {
	edits := slices.Clone(w.ops[ops:])
	w.ops = w.ops[:ops]
	for i := n - 1; i >= v.Len(); i-- {
		w.enter(place{index: i, is: toElement})
		if err := w.op(Remove, nil); err != nil {
			return err
		}
		w.leave()
	}
	w.ops = append(w.ops, edits...)
	return w.append(v, n)
}

// lockstep compares elements of one index. It returns how many the document has, or false as
// soon as two are not the same element: they differ, and so do their keys, if they have any.
func (w *walker) lockstep(end int, v reflect.Value, s *shapes.Shape, mergeKey string) (n int, inStep bool, err error) {
	depth, assumed := len(w.path), len(w.assumed)
	for w.next++; w.next < end; n++ {
		if n >= v.Len() {
			w.skip()
			continue
		}
		elem := v.Index(n)
		w.enter(place{index: n, is: toElement})
		w.assumed = append(w.assumed, assumption{part: w.next, elem: elem, shape: s.Elem, mergeKey: mergeKey})
		err = w.value(elem, s.Elem, "")
		own := err == errOtherElement && w.sure == assumed //nolint:errorlint // it is that very one
		w.path, w.assumed = w.path[:depth], w.assumed[:assumed]
		w.sure = min(w.sure, assumed)
		switch {
		case own:
			return n, false, nil
		case err != nil:
			return n, false, err
		}
	}
	return n, true, nil
}

// An assumption is that an element of the document is the one that the Go list has at the same
// index.
type assumption struct {
	part     int
	elem     reflect.Value
	shape    *shapes.Shape
	mergeKey string
}

var errOtherElement = errors.New("the element of that index is another one")

// differs is called before a difference is written. As long as there is none, the elements that
// the path goes through are the same ones; now their keys have to say so. If one of them does
// not, w.sure is its place, and the comparison goes back to its list.
func (w *walker) differs() error {
	for ; w.sure < len(w.assumed); w.sure++ {
		if !w.holds(&w.assumed[w.sure]) {
			return errOtherElement
		}
	}
	return nil
}

// holds reports whether both elements have a key, and the same one.
func (w *walker) holds(a *assumption) bool {
	key, keyed := keyOf(a.shape, a.mergeKey)
	if !keyed {
		key, keyed = keyOf(a.shape, "name")
	}
	return keyed && w.sameKey(key, a.part, a.elem)
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
		w.next = l.parts[i]
		if err := w.value(v.Index(j), s.Elem, ""); err != nil {
			return err
		}
		w.leave()
	}
	return nil
}
