// SPDX-License-Identifier: Apache-2.0

package object

import (
	"slices"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A Place says where a value begins in a body, and in how many arrays and objects it is nested.
type Place struct {
	Found         bool
	Offset, Depth int
}

// Find returns the place of the value at a path. The path starts at the JSON value at body[offset], which
// is nested in depth arrays and objects. If a name occurs more than once, the last one counts, as in
// encoding/json. A null, or a path through a null, counts as not found. The second result is the end of the
// value at offset. Find returns an error if that value is not valid JSON.
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

// Part returns the bytes of the value at a path of a document, which must be valid JSON. It returns nil if there is no
// such value.
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
