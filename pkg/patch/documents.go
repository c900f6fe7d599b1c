// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"

	"github.com/admitkit/admitkit/internal/jsondiff"
)

// Documents returns the patch that makes after of before, for documents that no Go type
// describes. The rules:
//
//  1. What counts is the difference of the values, as RFC 6902 defines it in section 4.6: the
//     order of members, white space and escapes are none, and numbers are equal as numbers, so
//     1, 1.0 and 10e-1 are one. A member that is null is not one that is missing. What the
//     patch puts in is spelt as it is in after.
//  2. No difference, no operation: the patch is nil. Otherwise its operations, applied in
//     order to before, give a document that equals after.
//  3. Objects are compared member by member. A value of another kind is replaced, and so is the
//     whole document (at the pointer "") where it is not an object or array in both.
//  4. List elements are matched by "name" where every element of both lists has one and none
//     twice, or else by another merge key of the built-in types that does: "type", "uid", "ip",
//     "mountPath", "devicePath", "containerPort", "port", "topologyKey". Lists without such a
//     key are matched by content, as for [Diff].
//
// It fails with an [*Error] when one of them is not JSON or has a duplicate name anywhere (see
// [ErrDuplicateName]).
func Documents(before, after []byte) (Patch, error) {
	b, err := jsondiff.Parse(before)
	if err != nil {
		return nil, fmt.Errorf("before: %w", converted(err))
	}
	a, err := jsondiff.Parse(after)
	if err != nil {
		return nil, fmt.Errorf("after: %w", converted(err))
	}
	ops, err := jsondiff.Documents(b, a)
	return fromOperations(ops), converted(err)
}

// Values is [Documents] of the encodings of two Go values, such as the map[string]any of
// unstructured objects. Documents in bytes are json.RawMessage to it: a []byte encodes to a
// string. Where one value was decoded from a document that is at hand, [Diff] does better: it
// keeps what the Go type does not know.
func Values(before, after any) (Patch, error) {
	b, err := jsondiff.Encode(before)
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	a, err := jsondiff.Encode(after)
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	if bytes.Equal(b, a) {
		return nil, nil
	}
	return Documents(b, a)
}
