// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/json"
	"strings"
)

// pieceBytes is the size of a shared piece of memory. A string that is still in use keeps its whole piece in memory.
const pieceBytes = 1 << 10

// Texts converts bytes to strings and stores many of them in one piece of memory. A strings.Builder never changes bytes
// that it has returned, so a piece can serve several documents. The zero value is ready for use. A Texts is not safe
// for concurrent use and must not be copied.
type Texts struct{ piece strings.Builder }

// Text returns b as a string.
func (t *Texts) Text(b []byte) string {
	if len(b) > pieceBytes/4 {
		return string(b)
	}
	if t.piece.Cap()-t.piece.Len() < len(b) {
		t.piece.Reset()
		t.piece.Grow(pieceBytes)
	}
	start := t.piece.Len()
	t.piece.Write(b)
	return t.piece.String()[start:]
}

// AppendString appends s to dst as a JSON string. Invalid UTF-8 becomes the replacement character.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b == '"' || b == '\\' || b >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
