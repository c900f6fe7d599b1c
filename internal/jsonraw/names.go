// SPDX-License-Identifier: Apache-2.0

package jsonraw

import "encoding/binary"

// Names are the names of the members that a reader of an object looks for, in the order in
// which they mostly come.
type Names struct {
	labels     []label
	places     map[string]int
	beginnings [64]uint64 // which first bytes they have, by their length
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

// Member reads the name of the next member of an object and returns its place among the names,
// or -1. Members mostly come in the order of the names, some left out: next is where the last
// one found says to begin.
func (n *Names) Member(c *Cursor, next int) (int, error) {
	c.space()
	if text := c.data[c.pos:]; len(text) >= wordBytes {
		head := binary.LittleEndian.Uint64(text)
		for i := next; i < min(next+nearby, len(n.labels)); i++ {
			if l := &n.labels[i]; l.is(text, head) {
				c.pos += len(l.text)
				return i, nil
			}
		}
	}
	name, err := c.Name()
	if err != nil {
		return -1, err
	}
	return n.Find(name), nil
}

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
