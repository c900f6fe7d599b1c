// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// mostCopied bounds how many bytes the copies of one patch may make together, as the API server
// does (JSONPatchMaxCopyBytes): copies of copies grow fast. The library takes the bound from a
// variable of its own only. A program that has set it keeps its own bound.
const mostCopied = 3 << 20

func init() {
	if jsonpatch.AccumulatedCopySizeLimit == 0 {
		jsonpatch.AccumulatedCopySizeLimit = mostCopied
	}
}

// Apply returns the document with the patch applied as the API server does it, with the same
// library. To that, more is allowed than to RFC 6902: a Replace adds the member that is missing,
// a Test takes a missing member for null, and a negative index counts from the end of a list.
// And less: the document must be an object or an array and stay one, a Test wants numbers spelt
// alike, and copies may not exceed 3 MiB together.
//
// The API server applies the patch to its own encoding of the object and decodes the result into
// its own type, which drops what that type does not know; Apply does neither.
//
// An error names the operation that failed and holds an [*Error] with its pointer; what
// [Patch.Check] finds is refused too. The document itself is not changed.
func Apply(doc []byte, p Patch) ([]byte, error) {
	if len(p) == 0 {
		return bytes.Clone(doc), nil
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	result, err := applyAll(doc, p)
	if err == nil {
		return result, nil
	}
	failing := sort.Search(len(p), func(k int) bool {
		_, err := applyAll(doc, p[:k])
		return err != nil
	})
	if failing == 0 {
		return nil, &Error{Err: err}
	}
	k := failing - 1
	return nil, fmt.Errorf("operation %d, %s: %w", k, p[k].Op, &Error{Pointer: p[k].Path, Err: err})
}

// applyAll also turns a panic into an error: the library has one where a patch makes members of
// a null.
func applyAll(doc []byte, p Patch) (result []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not possible: %v", r)
		}
	}()
	doc = bytes.TrimLeft(doc, " \t\r\n")
	if len(doc) == 0 {
		return nil, errors.New("there is no document")
	}
	decoded, err := jsonpatch.DecodePatch(p.AppendJSON(nil))
	if err != nil {
		return nil, err
	}
	return decoded.Apply(doc)
}
