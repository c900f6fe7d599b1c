// SPDX-License-Identifier: Apache-2.0

package review

import (
	"sync"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// piecePool has pieces of memory that still have room.
var piecePool = sync.Pool{New: func() any { return new(pieces) }}

type pieces struct{ texts jsonraw.Texts }

func (p *pieces) text(b []byte) string {
	if text := frequent(b); text != "" {
		return text
	}
	return p.texts.Text(b)
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
