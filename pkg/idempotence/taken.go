// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// taken remembers what came of documents and patches. A run sends one object many times, and gets
// the same patch for it. Objects do not change, so that one may stand for all that are the same.
type taken struct {
	objects map[string]*object   // by the text that was taken in
	patched map[[2]string][]byte // by the text, and the patch of it
}

// mostTaken bounds how many of each are remembered.
const mostTaken = 256

// remember puts a value into a map, in place of all others when there are too many.
func remember[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil || len(*m) >= mostTaken {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// patch applies a patch to a document.
func (t *taken) patch(operations jsonpatch.Patch, patch, doc []byte) ([]byte, error) {
	key := [2]string{string(doc), string(patch)}
	if out, ok := t.patched[key]; ok {
		return out, nil
	}
	out, err := applied(operations, doc)
	if err == nil {
		remember(&t.patched, key, out)
	}
	return out, err
}
