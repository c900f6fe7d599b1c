// SPDX-License-Identifier: Apache-2.0

package jsonraw

import "strings"

// pieceBytes is how much memory a string that is kept may hold on to besides its own.
const pieceBytes = 1 << 10

// Texts makes strings out of bytes, many in one piece of memory. A strings.Builder never
// changes what it has handed out, so a piece can be filled for one document after the other.
// The zero value is ready; it is not safe for concurrent use, and must not be copied.
type Texts struct{ piece strings.Builder }

// Text returns the text that b is.
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
