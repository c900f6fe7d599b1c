// SPDX-License-Identifier: Apache-2.0

package decode

import "strings"

// pieceBytes is how much memory a kept string may hold on to besides its own.
const pieceBytes = 1 << 10

// texts makes strings out of bytes, many in one piece of memory. A strings.Builder never
// changes what it has handed out.
type texts struct{ piece strings.Builder }

func (t *texts) text(b []byte) string {
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
