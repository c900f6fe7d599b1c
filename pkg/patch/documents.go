// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"

	"github.com/admitkit/admitkit/internal/jsondiff"
)

// Documents returns the patch that turns before into after, for documents without a Go type. The rules:
//
//  1. Values are compared as RFC 6902 section 4.6 defines equality. The order of members, white space and escapes
//     do not count, and numbers are compared by value, so 1, 1.0 and 10e-1 are equal. A null member differs
//     from a missing one. The patch spells values as after does.
//  2. Without a difference the patch is nil. Otherwise its operations, applied to before in order, give a
//     document that equals after.
//  3. Objects are compared member by member. A value of another kind is replaced. The whole document (pointer "")
//     is replaced unless both are objects or both are arrays.
//  4. List elements are matched by "name" if every element of both lists has a distinct one, else by the first
//     other merge key of the built-in types for which that holds: "type", "uid", "ip", "mountPath",
//     "devicePath", "containerPort", "port", "topologyKey". Other lists are matched by content, as in [Diff].
//
// It fails with an [*Error] if a document is not JSON or has a duplicate name (see [ErrDuplicateName]).
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

// Values encodes two Go values, such as the map[string]any of unstructured objects, and returns the patch that
// [Documents] returns for the encodings. Pass JSON documents as json.RawMessage, because a []byte encodes to a base64
// string. If one value was decoded from a document that you still have, use [Diff], which keeps the fields that the Go
// type does not know.
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
