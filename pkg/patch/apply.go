// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"
	"sort"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/internal/jsondiff"
	"github.com/admitkit/admitkit/internal/jsonraw"
)

// maxCopied bounds the bytes that all Copy operations of one patch may add together, because copies of copies grow
// fast. It is the API server's bound (JSONPatchMaxCopyBytes in k8s.io/apiserver).
const maxCopied = 3 << 20

// Apply returns the document with the patch applied as the API server applies it, with the same library. The
// library differs from RFC 6902. It accepts more:
//
//   - a Replace adds a missing member;
//   - a Test of a missing member compares it with null, and a Copy copies it as null;
//   - a negative index counts from the end of a list.
//
// It also accepts less:
//
//   - the document must be an object or an array and remain one;
//   - only a Replace or a Test may have the whole document as its path;
//   - a Test compares the spelling of strings and numbers;
//   - the copies of one patch must not exceed 3 MiB together.
//
// The API server applies the patch to its own encoding of the object and decodes the result into its own type,
// which drops unknown fields. Apply does neither.
//
// An error about the document is an [*Error]. An error about the patch names the operation and wraps an [*Error]. Its
// Pointer is the operation's From if the source of a Move or Copy does not exist, and the operation's Path otherwise.
// Apply also fails if [Patch.Check] does. It does not change doc, and returns a copy of doc for an empty patch.
func Apply(doc []byte, p Patch) ([]byte, error) {
	if err := applicable(doc); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return bytes.Clone(doc), nil
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
	before, _ := applyAll(doc, p[:k]) // cannot fail: it was applied before
	return nil, fmt.Errorf("operation %d, %s: %w", k, p[k].Op, faultOf(before, p[k], err))
}

// applicable returns an error for a document that no patch applies to.
func applicable(doc []byte) error {
	if err := jsondiff.CheckSyntax(doc); err != nil {
		return converted(err)
	}
	c := jsonraw.At(doc, 0, 0)
	if kind := c.Kind(); kind != jsonraw.Object && kind != jsonraw.Array {
		return &Error{Err: fmt.Errorf("want an object or an array, got %s", kind.Noun())}
	}
	return nil
}

// applyAll applies p with the library. It turns a panic into an error: the library panics where a patch
// adds members to a null that was copied, or tests a list that holds a null.
func applyAll(doc []byte, p Patch) (result []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the API server fails too: %v", r)
		}
	}()
	if err := checkCopies(doc, p); err != nil {
		return nil, err
	}
	return applyUnbounded(doc, p)
}

func applyUnbounded(doc []byte, p Patch) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(p.AppendJSON(nil))
	if err != nil {
		return nil, err
	}
	return decoded.Apply(bytes.TrimLeft(doc, " \t\r\n"))
}

var errCopiesTooLarge = fmt.Errorf("the copies of the patch are more than %d bytes together", maxCopied)

// checkCopies enforces maxCopied. The library has that bound only as a global variable of the whole
// program. So checkCopies applies the patch step by step up to each copy, and counts the bytes that the
// copy will add. A step that fails ends the check without an error, because the whole patch then fails,
// too.
func checkCopies(doc []byte, p Patch) error {
	copied, applied := 0, 0
	for i := range p {
		if p[i].Op != Copy {
			continue
		}
		var err error
		if doc, err = applyUnbounded(doc, p[applied:i]); err != nil {
			return nil //nolint:nilerr // the whole patch fails with this error
		}
		applied = i
		if copied += len(valueAt(doc, p[i].From)); copied > maxCopied {
			return errCopiesTooLarge
		}
	}
	return nil
}
