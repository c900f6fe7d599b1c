// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"reflect"
	"slices"

	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// list compares the elements index by index, which nearly always suffices. If elements moved, it matches them
// by key, else by content.
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
	level := len(w.assumed)
	w.assumed = append(w.assumed, assumption{part: start, v: v, shape: s, mergeKey: mergeKey})
	n, inStep, err := w.lockstep(end, v, s)
	own := w.assumed[level]
	w.assumed, w.sure = w.assumed[:level], min(w.sure, level)
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
	switch keyed := w.keysOf(&own); {
	case keyed == nil:
		w.next, w.ops = start, w.ops[:ops]
		return w.documents(v, s, mergeKey)
	case inStep && v.Len() == 0:
		return w.set(Replace, v)
	case inStep:
		return w.resize(v, n, ops)
	default:
		err = w.rearrange(keyed, v, s, n, ops)
		w.next = end
		return err
	}
}

// resize adds or removes elements at the end of a list whose first n elements did not move. Removals come
// before the edits of the other elements, which are the operations from index ops on.
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

// lockstep compares the elements index by index. It returns the number of elements in the document. It
// stops and returns false at the first index where the keys show that the elements are not the same element.
func (w *walker) lockstep(end int, v reflect.Value, s *shapes.Shape) (n int, inStep bool, err error) {
	depth, level := len(w.path), len(w.assumed)-1
	for w.next++; w.next < end; n++ {
		if n >= v.Len() {
			w.skip()
			continue
		}
		w.enter(place{index: n, is: toElement})
		w.assumed[level].index = n
		err = w.value(v.Index(n), s.Elem, "")
		other := err == errOtherElement && w.sure == level //nolint:errorlint // never wrapped
		w.path, w.sure = w.path[:depth], min(w.sure, level)
		switch {
		case other:
			return n, false, nil
		case err != nil:
			return n, false, err
		}
	}
	return n, true, nil
}

// append adds the elements from index n on.
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

// rearrange brings the document's elements into the order of the Go list and then compares them in place. The
// first n elements did not move and were compared before: their edits are the operations from index
// ops on.
func (w *walker) rearrange(l *keyedList, v reflect.Value, s *shapes.Shape, n, ops int) error {
	edits := slices.Clone(w.ops[ops:])
	w.ops = w.ops[:ops]
	from := l.origin()
	if !slices.ContainsFunc(from, func(i int) bool { return i != none }) {
		return w.set(Replace, v) // no old element stays
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
	w.ops = append(w.ops, edits...)
	for j, i := range from {
		if i == none || j < n {
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
