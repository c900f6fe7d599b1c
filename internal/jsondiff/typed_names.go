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
	inOrder  bool         // the names are sorted in the document
	repeated []byte       // a duplicate name, or nil
	shadowed map[int]bool // parts whose name a later entry repeats
	base     int          // index of the list's start in reader.names
}

// namesOf lists the names of the object whose part is at index object. Most objects are sorted, because the API server
// writes maps in order.
func (r *reader) namesOf(object int) nameList {
	l := nameList{base: len(r.names), inOrder: true}
	for i := object + 1; i < int(r.parts[object].Next); i = int(r.parts[i].Next) {
		e := entryName{r.name(&r.parts[i]), i}
		if n := len(r.names); n > l.base && bytes.Compare(r.names[n-1].name, e.name) >= 0 {
			l.inOrder = false
		}
		r.names = append(r.names, e)
	}
	l.sorted = r.names[l.base:len(r.names):len(r.names)]
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

func (r *reader) forget(l *nameList) { r.names = r.names[:l.base] }
