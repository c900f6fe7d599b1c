// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Names are the names of the members that a reader of an object looks for, in the order in
// which they mostly come.
type Names struct {
	labels     []label
	places     map[string]int
	beginnings [64]uint64 // which first bytes they have, by their length
	foreign    bool       // some are not only ASCII
}

// NewNames returns names, none of which is there twice.
func NewNames(names ...string) *Names {
	n := &Names{places: make(map[string]int, len(names))}
	for i, name := range names {
		n.labels = append(n.labels, newLabel(name))
		n.places[name] = i
		if name != "" {
			n.beginnings[len(name)%64] |= 1 << (name[0] % 64)
		}
		n.foreign = n.foreign || strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
	}
	return n
}

// A label is a member's name as a document has it, mostly: quoted, without escapes, the colon
// right behind it.
type label struct {
	text string
	// The first eight bytes, or those that there are.
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

// is reports whether text, which begins with head, begins with the label.
func (l *label) is(text []byte, head uint64) bool {
	return head&l.mask == l.head &&
		(len(l.text) <= wordBytes || len(l.text) <= len(text) && string(text[wordBytes:len(l.text)]) == l.text[wordBytes:])
}

// nearby is how many labels are compared before a name is read and looked up.
const nearby = 24

// Next goes to the next member of an object that has one of the names, reads its name, and returns
// its place among them; other members it checks and skips. There are no more when it comes to the
// end of the object. Members mostly come in the order of the names, some left out: next is where
// the last one found says to begin.
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

// predicted reads a name which is one of the next few, or returns -1.
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

// skipOther skips a member which is none of these, where that and all else is seen at a glance.
func (n *Names) skipOther(c *Cursor) bool {
	if n.foreign || !c.at('"') {
		return false
	}
	start := c.pos + 1
	end := c.ahead.skipPlain(c.data, start)
	if end >= len(c.data) || c.data[end] != ':' || n.mayHave(c.data[start:end-1]) {
		return false
	}
	if end = c.ahead.skipValue(c.data, end+1, MaxDepth-c.depth); end == wrong {
		c.ahead = window{} // it may be ahead of what is read again
		return false
	}
	c.pos = end
	return true
}

// Name returns the name at a place.
func (n *Names) Name(place int) string { l := n.labels[place].text; return l[1 : len(l)-2] }

// Find returns the place of a name, or -1.
func (n *Names) Find(name []byte) int {
	if n.mayHave(name) {
		if i, ok := n.places[string(name)]; ok {
			return i
		}
	}
	return -1
}

// mayHave is false for most names that are none of these: none of that length begins like it.
func (n *Names) mayHave(name []byte) bool {
	return len(name) > 0 && n.beginnings[len(name)%64]&(1<<(name[0]%64)) != 0
}
