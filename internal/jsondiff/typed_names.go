// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"cmp"
	"slices"
)

// A nameList holds the names of an object that is compared with a map, in their order.
type nameList struct {
	sorted   []entryName
	inOrder  bool         // the document has them like that
	repeated []byte       // a name that stands twice, or nil
	shadowed map[int]bool // the parts of entries of which a later one has the name
	base     int          // where the list begins in walker.names
}

// An entryName is the name of one entry, which has its part at a place of the outline.
type entryName struct {
	name []byte
	part int
}

// namesOf lists the names of the object that has its part at a place. Most objects have them in
// order, since that is how the API server writes a map.
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
