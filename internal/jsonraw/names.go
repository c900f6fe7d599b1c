// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Names holds the member names that a reader of an object knows, in their usual order.
type Names struct {
	labels      []label
	places      map[string]int
	beginnings  [64]uint64 // by length: the set of first bytes
	hasNonASCII bool       // some names are not ASCII
}

// NewNames returns a Names that holds the given names, which must be distinct.
func NewNames(names ...string) *Names {
	n := &Names{places: make(map[string]int, len(names))}
	for i, name := range names {
		n.labels = append(n.labels, newLabel(name))
		n.places[name] = i
		if name != "" {
			n.beginnings[len(name)%64] |= 1 << (name[0] % 64)
		}
		n.hasNonASCII = n.hasNonASCII || strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
	}
	return n
}

// A label is a member's name as it usually appears in a document: quoted, without escapes, and directly
// followed by the colon.
type label struct {
	text string
	// The first eight bytes, or fewer if the label is shorter.
	head, mask uint64
}

func newLabel(name string) label {
	l := label{text: `"` + name + `":`}
	var head, mask [wordBytes]byte
	for i := range copy(head[:], l.text) {
		mask[i] = 0xff
	}
	l.head, l.mask = binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(mask[:])
	return l
}

// is reports whether text, whose first bytes are head, begins with the label.
func (l *label) is(text []byte, head uint64) bool {
	return head&l.mask == l.head &&
		(len(l.text) <= wordBytes || len(l.text) <= len(text) && string(text[wordBytes:len(l.text)]) == l.text[wordBytes:])
}

// nearby is the number of labels that are compared before a name is looked up.
const nearby = 24

// Next moves to the next member with a known name, reads the name, and returns its index. It checks and skips
// other members, and reports more as false at the end of the object. Members mostly come in the order of the
// names, so the search begins at index next: the last index plus one.
//
//	more, err := c.OpenObject()
//	for place := -1; more && err == nil; {
//		if place, more, err = names.Next(&c, place+1); !more || err != nil {
//			break
//		}
//		… // read the value
//		more, err = c.NextMember()
//	}
func (n *Names) Next(c *Cursor, next int) (place int, more bool, err error) {
	for more = true; more && err == nil; more, err = c.NextMember() {
		c.space()
		if place = n.predicted(c, next); place >= 0 {
			return place, true, nil
		}
		if n.skipOther(c) {
			continue
		}
		name, err := c.Name()
		if err != nil {
			return -1, false, err
		}
		if place = n.Find(name); place >= 0 {
			return place, true, nil
		}
		if err = c.Skip(); err != nil {
			return -1, false, err
		}
	}
	return -1, false, err
}

// predicted reads the next name and returns its index if it is one of the names that usually come next: those from
// index next on. Otherwise it returns -1.
func (n *Names) predicted(c *Cursor, next int) int {
	if text := c.data[c.pos:]; len(text) >= wordBytes {
		head := binary.LittleEndian.Uint64(text)
		for i := next; i < min(next+nearby, len(n.labels)); i++ {
			if l := &n.labels[i]; l.is(text, head) {
				c.pos += len(l.text)
				return i
			}
		}
	}
	return -1
}

// skipOther skips a member if a quick check shows that its name is unknown. It reports whether it did.
func (n *Names) skipOther(c *Cursor) bool {
	if n.hasNonASCII || !c.at('"') {
		return false
	}
	start := c.pos + 1
	end := c.ahead.skipPlain(c.data, start)
	if end >= len(c.data) || c.data[end] != ':' || n.mayHave(c.data[start:end-1]) {
		return false
	}
	if end = c.ahead.skipValue(c.data, end+1, MaxDepth-c.depth); end == unhandled {
		c.ahead = window{} // the cursor is still before the value
		return false
	}
	c.pos = end
	return true
}

// Name returns the name with an index.
func (n *Names) Name(place int) string { l := n.labels[place].text; return l[1 : len(l)-2] }

// Find returns the index of a name, or -1.
func (n *Names) Find(name []byte) int {
	if n.mayHave(name) {
		if i, ok := n.places[string(name)]; ok {
			return i
		}
	}
	return -1
}

// mayHave returns false for most unknown names: no known name has that length and first byte.
func (n *Names) mayHave(name []byte) bool {
	return len(name) > 0 && n.beginnings[len(name)%64]&(1<<(name[0]%64)) != 0
}
