// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"
	"reflect"
)

// Diff returns the patch that carries the change from before to after over to raw, the
// document that before was decoded from. before and after are values of one Go type, or
// pointers to them, that encode to JSON objects. The rules, in order:
//
//  1. What counts is the difference between the JSON encodings of before and after.
//     Quantities are compared by value, times by instant, nil and empty alike where
//     omitempty leaves both out; a nil never replaces an empty list or map. What the type
//     does not know is never touched.
//  2. No difference, no operation: the patch is nil. Otherwise its operations, applied in
//     order to raw as RFC 6902 says, give a document that decodes to after.
//  3. A member is added when raw lacks it, replaced when it differs, removed when after
//     omits it. Where raw has an object, only what differs inside it is touched. Where raw
//     has nothing or null for a parent, the parent is written whole.
//  4. List elements are matched by merge key: the patchMergeKey tag of the field or else
//     "name", where every element has one and none twice. Lists without such a key are
//     matched by equal elements; then an object that shares half of its members or more
//     with one that is gone is that one, edited: the pairs that share most members first.
//     Where hundreds of elements were edited, each is compared with its neighbours only.
//     Between two matches, what stands in the place of another is that one, edited, except
//     in a list of objects of which the type knows every member. Of elements that the type
//     cannot tell apart, but the document can, none may go: see [ErrAlike].
//  5. Matched elements keep every field the type does not know: they are edited in place,
//     and moved when their order changed. Elements without a match are removed or added.
//  6. Members are visited in the order of their names; in a list, removals come first from
//     the back, then moves and additions from the front, then edits. The same arguments
//     give the same bytes.
//
// The patch holds no operation without effect, and no copy or test. The number of moves is
// the least possible; that the whole patch is the shortest possible is not promised.
//
// It fails with an [*Error] when raw is not JSON, has a duplicate name (see
// [ErrDuplicateName]), or when it would have to guess (see [ErrAlike]), and with the encoder's
// error when a value does not encode. Nothing is parsed when nothing changed.
func Diff(raw []byte, before, after any) (Patch, error) {
	if tb, ta := reflect.TypeOf(before), reflect.TypeOf(after); tb != ta {
		return nil, fmt.Errorf("before is a %v and after a %v: they must have one type", tb, ta)
	}
	beforeDoc, err := encode(before)
	if err != nil {
		return nil, err
	}
	afterDoc, err := encode(after)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(beforeDoc, afterDoc) {
		return nil, nil
	}
	return diffDocuments(raw, beforeDoc, afterDoc, reflect.TypeOf(after))
}
