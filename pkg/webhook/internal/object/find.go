// SPDX-License-Identifier: Apache-2.0

package object

import (
	"slices"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A Place is where a value begins in a body, and the number of arrays and objects around it.
type Place struct {
	Found         bool
	Offset, Depth int
}

// Find looks for the value at a path of the JSON value that begins at an offset of body, inside depth
// arrays and objects. The last of duplicate names counts, as in encoding/json. A null is not found, nor
// is what would lie inside it. Find also returns the end of the whole value. It fails if that is not JSON.
func Find(body []byte, offset, depth int, path []string) (at Place, end int, err error) {
	c := jsonraw.At(body, offset, depth)
	if len(path) == 0 || c.Kind() != jsonraw.Object {
		at = Place{Found: len(path) == 0 && c.Kind() != jsonraw.Null, Offset: c.Offset(), Depth: depth}
		err = c.Skip()
		return at, c.Offset(), err
	}
	more, err := c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = c.Name(); err != nil {
			break
		}
		if string(name) == path[0] {
			var next int
			c.Kind() // skips white space
			at, next, err = Find(body, c.Offset(), depth+1, path[1:])
			c.Advance(next - c.Offset())
		} else {
			err = c.Skip()
		}
		if err == nil {
			more, err = c.NextMember()
		}
	}
	return at, c.Offset(), err
}

// Part returns the bytes of the value at a path of a document that was checked before. It returns nil if
// there is none.
func Part(document []byte, path []string) []byte {
	at, _, err := Find(document, 0, 0, path)
	if err != nil || !at.Found {
		return nil
	}
	c := jsonraw.At(document, at.Offset, at.Depth)
	part, err := c.Value()
	if err != nil {
		return nil
	}
	return slices.Clip(part)
}
