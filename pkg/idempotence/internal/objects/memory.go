// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"crypto/sha256"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// Memory caches decoded documents and applied patches, because a run often sends equal objects and gets equal patches.
// Objects are immutable, so equal ones can be shared.
type Memory struct {
	objects recall[Digest, *Object]   // by the encoded document
	patched recall[[2]Digest, []byte] // by the encoded document and the patch
}

// A Digest is the SHA-256 digest of a text.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a text.
func DigestOf(text []byte) Digest { return sha256.Sum256(text) }

// recall caches values up to a total size.
type recall[K comparable, V any] struct {
	values map[K]V
	size   int
}

const (
	// mostTaken is the approximate limit of a cache's size, in bytes.
	mostTaken = 32 << 20
	// perValue is the overhead of a cached value, in bytes.
	perValue = 1 << 10
	// perByte is the memory in bytes that an object needs for each byte of its text. It needs memory for the text, the
	// document and the Go value.
	perByte = 4
)

// put caches a value. If the cache becomes too large, put empties it first.
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

// Patch applies a patch to a document, or returns the cached result. operations is the decoded patch.
func (t *Memory) Patch(operations jsonpatch.Patch, patch, doc []byte) ([]byte, error) {
	key := [2]Digest{DigestOf(doc), DigestOf(patch)}
	if out, ok := t.patched.get(key); ok {
		return out, nil
	}
	out, err := ApplyPatch(operations, doc)
	if err == nil {
		t.patched.put(key, out, len(out))
	}
	return out, err
}

// ApplyPatch applies a patch with the API server's library and turns the library's panics into errors.
func ApplyPatch(operations jsonpatch.Patch, doc []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the patch makes the API server's code panic: %v", p)
		}
	}()
	return operations.Apply(doc)
}
