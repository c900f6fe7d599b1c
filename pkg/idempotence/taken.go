// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/sha256"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// taken remembers what came of documents and patches. A run sends one object many times, and gets
// the same patch for it. Objects do not change, so that one may stand for all that are the same.
type taken struct {
	objects recall[digest, *object]   // by the text that was taken in
	patched recall[[2]digest, []byte] // by the text, and the patch of it
}

// A digest stands for a text, which may be large.
type digest [sha256.Size]byte

func digestOf(text []byte) digest { return sha256.Sum256(text) }

// recall remembers values up to a size.
type recall[K comparable, V any] struct {
	values map[K]V
	size   int
}

const (
	// mostTaken bounds the bytes of what is remembered of a sort, about.
	mostTaken = 32 << 20
	// perValue is what a value takes besides.
	perValue = 1 << 10
	// perByte is what an object takes for each byte of its text: the text, the document, the Go type.
	perByte = 4
)

// put remembers a value, in place of all others when it gets too much.
func (m *recall[K, V]) put(key K, value V, size int) {
	size += perValue
	if m.values == nil || m.size+size > mostTaken {
		m.values, m.size = map[K]V{}, 0
	}
	m.values[key] = value
	m.size += size
}

func (m *recall[K, V]) get(key K) (value V, ok bool) {
	value, ok = m.values[key]
	return value, ok
}

// patch applies a patch to a document.
func (t *taken) patch(operations jsonpatch.Patch, patch, doc []byte) ([]byte, error) {
	key := [2]digest{digestOf(doc), digestOf(patch)}
	if out, ok := t.patched.get(key); ok {
		return out, nil
	}
	out, err := applied(operations, doc)
	if err == nil {
		t.patched.put(key, out, len(out))
	}
	return out, err
}
