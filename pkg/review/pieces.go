// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"sync"
)

// pieceBytes is how much memory a text that is kept may hold on to besides its own.
const pieceBytes = 1 << 10

// piecePool has pieces of memory that still have room.
var piecePool = sync.Pool{New: func() any { return new(pieces) }}

// pieces makes strings out of bytes, many in one piece of memory. A strings.Builder never
// changes what it has handed out, so a piece can be filled by one call after the other.
type pieces struct{ piece strings.Builder }

func (p *pieces) text(b []byte) string {
	switch text := frequent(b); {
	case text != "":
		return text
	case len(b) > pieceBytes/4:
		return string(b)
	}
	if p.piece.Cap()-p.piece.Len() < len(b) {
		p.piece.Reset()
		p.piece.Grow(pieceBytes)
	}
	start := p.piece.Len()
	p.piece.Write(b)
	return p.piece.String()[start:]
}

// frequent returns the constant for what nearly every review holds, or nothing.
func frequent(b []byte) string {
	switch string(b) {
	case reviewKind:
		return reviewKind
	case group + "/" + string(V1):
		return group + "/" + string(V1)
	case string(V1):
		return string(V1)
	case "CREATE":
		return "CREATE"
	case "UPDATE":
		return "UPDATE"
	case "DELETE":
		return "DELETE"
	case "Pod":
		return "Pod"
	case "pods":
		return "pods"
	}
	return ""
}
