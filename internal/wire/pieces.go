// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// piecePool keeps the unused memory and the last values of a review for later reviews.
var piecePool = sync.Pool{New: func() any { return new(pieces) }}

type pieces struct {
	texts    jsonraw.Texts
	kind     memo[metav1.GroupVersionKind]
	resource memo[metav1.GroupVersionResource]
}

func (p *pieces) text(b []byte) string {
	if text := frequent(b); text != "" {
		return text
	}
	return p.texts.Text(b)
}

// frequent returns the constant for a text that nearly every review holds, or "".
func frequent(b []byte) string {
	switch string(b) {
	case Kind:
		return Kind
	case Group + "/" + V1:
		return Group + "/" + V1
	case "CREATE":
		return "CREATE"
	case "UPDATE":
		return "UPDATE"
	case "DELETE":
		return "DELETE"
	case "system:authenticated":
		return "system:authenticated"
	case "system:serviceaccounts":
		return "system:serviceaccounts"
	}
	return ""
}

// A memo is the value that was last decoded from an object, and its JSON text. Most calls of a hook are about
// one kind, and each review holds the kind twice.
type memo[T comparable] struct {
	text  []byte
	value T
}

// mostRemembered is the largest text of a memo, in bytes.
const mostRemembered = 512

// remembered fills dst from the memo if the next value has the memo's text, and otherwise calls read. A dst that
// is not zero was filled by an earlier member with the same name. Then read must merge the two values.
func remembered[T comparable](d *decoder, m *memo[T], dst *T, read func() error) error {
	if d.c.Kind() != jsonraw.Object || *dst != *new(T) {
		return read()
	}
	start := d.c.Offset()
	if len(m.text) > 0 && bytes.HasPrefix(d.body[start:], m.text) {
		d.c.Advance(len(m.text))
		*dst = m.value
		return nil
	}
	if err := read(); err != nil {
		return err
	}
	if text := d.c.Since(start); len(text) <= mostRemembered {
		m.text, m.value = append(m.text[:0], text...), *dst
	}
	return nil
}
