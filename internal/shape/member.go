// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/binary"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A label is a member's name as a document has it, mostly: quoted, without escapes, the colon
// right behind it.
type label struct {
	text string
	// The first eight bytes, or those that there are.
	head, mask uint64
}

const headBytes = 8

func newLabel(name string) label {
	l := label{text: `"` + name + `":`}
	var head, mask [headBytes]byte
	for i := range copy(head[:], l.text) {
		mask[i] = 0xff
	}
	l.head, l.mask = binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(mask[:])
	return l
}

// is reports whether text, which begins with head, begins with the label.
func (l *label) is(text []byte, head uint64) bool {
	return head&l.mask == l.head &&
		(len(l.text) <= headBytes || len(l.text) <= len(text) && string(text[headBytes:len(l.text)]) == l.text[headBytes:])
}

// nearby is how many labels are compared before a name is read and looked up.
const nearby = 24

// Member reads the name of the next member of an object, and returns the place in Fields of the
// member with that name, or -1. Members mostly come in the order of the fields, some left out:
// next is where the last one found says to begin.
func (s *Shape) Member(c *jsonraw.Cursor, next int) (int, error) {
	if text := c.Rest(); len(text) >= headBytes {
		head := binary.LittleEndian.Uint64(text)
		for i := next; i < min(next+nearby, len(s.labels)); i++ {
			if l := &s.labels[i]; l.is(text, head) {
				c.Advance(len(l.text))
				return i, nil
			}
		}
	}
	name, err := c.Name()
	if err != nil {
		return -1, err
	}
	return s.Find(name), nil
}
