// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"cmp"
	"slices"
)

// A nameList holds the sorted names of an object that is compared with a map.
type nameList struct {
	sorted   []entryName
	inOrder  bool         // the document has them sorted
	repeated []byte       // a duplicate name, or nil
	shadowed map[int]bool // parts whose name a later entry repeats
	base     int          // index of the list's start in walker.names
}

// An entryName is the name of one entry and the index of its part.
type entryName struct {
	name []byte
	part int
}

// namesOf lists the names of the object whose part is at index place. Most objects are sorted, because the
// API server writes maps in order.
func (w *walker) namesOf(object int) nameList {
	l := nameList{base: len(w.names), inOrder: true}
	for i := object + 1; i < int(w.parts[object].Next); i = int(w.parts[i].Next) {
		e := entryName{w.name(&w.parts[i]), i}
		if n := len(w.names); n > l.base && bytes.Compare(w.names[n-1].name, e.name) >= 0 {
			l.inOrder = false
		}
		w.names = append(w.names, e)
	}
	l.sorted = w.names[l.base:len(w.names):len(w.names)]
	if l.inOrder {
		return l
	}
	slices.SortFunc(l.sorted, func(x, y entryName) int {
		return cmp.Or(bytes.Compare(x.name, y.name), cmp.Compare(x.part, y.part))
	})
	for i := 1; i < len(l.sorted); i++ {
		if bytes.Equal(l.sorted[i-1].name, l.sorted[i].name) {
			if l.shadowed == nil {
				l.shadowed = map[int]bool{}
			}
			l.repeated, l.shadowed[l.sorted[i-1].part] = l.sorted[i].name, true
		}
	}
	return l
}

func (w *walker) forget(l *nameList) { w.names = w.names[:l.base] }
