// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"
	"reflect"
	"sort"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/internal/decode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
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
// a Test takes a missing member for null, a Copy copies one as null, and a negative index counts
// from the end of a list. And less: the document must be an object or an array and stay one, only a
// Replace and a Test may be of the whole of it, a Test wants texts and numbers spelt alike, and
// copies may not exceed 3 MiB together.
//
// The API server applies the patch to its own encoding of the object and decodes the result into
// its own type, which drops what that type does not know; Apply does neither.
//
// An error about the document is an [*Error]. One about the patch names the operation that failed
// and holds an [*Error] with its pointer: From where there is nothing to move or copy, else Path.
// What [Patch.Check] finds is refused too. The document itself is not changed; an empty patch
// returns a copy of it.
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
	before, _ := applyAll(doc, p[:k]) // which did not fail
	return nil, fmt.Errorf("operation %d, %s: %w", k, p[k].Op, faultOf(before, p[k], err))
}

// applicable finds what no patch applies to.
func applicable(doc []byte) error {
	c := jsonraw.At(doc, 0, 0)
	if len(c.Rest()) == 0 {
		return &Error{Err: errEmpty}
	}
	var outline decode.Outline
	if err := outline.Scan(doc, shapes.Of(reflect.TypeFor[any]())); err != nil {
		return unreadable(err)
	}
	if kind := c.Kind(); kind != jsonraw.Object && kind != jsonraw.Array {
		return &Error{Err: fmt.Errorf("want an object or an array, got %s", withArticle(kind))}
	}
	return nil
}

// applyAll also turns a panic into an error: the library has one where a patch makes members of
// a null that was copied, or tests a list with a null in it.
func applyAll(doc []byte, p Patch) (result []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the API server fails too: %v", r)
		}
	}()
	decoded, err := jsonpatch.DecodePatch(p.AppendJSON(nil))
	if err != nil {
		return nil, err
	}
	return decoded.Apply(bytes.TrimLeft(doc, " \t\r\n"))
}
