// SPDX-License-Identifier: Apache-2.0

package patch

import "github.com/admitkit/admitkit/internal/jsondiff"

// Diff returns the patch that carries raw over to after, a value that raw was decoded into
// and that may have been changed since: a struct, or a map as in an Unstructured, or a
// pointer to one. The rules, in order:
//
//  1. What counts is the difference between what raw decodes to and after, as encoding/json
//     writes them.
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
//  6. Members are visited in the order in which raw has them, then those that it lacks: fields
//     in the order of the type, entries of a map in that of their keys. In a list, removals
//     come first from the back, then moves and additions from the front, then edits; but what
//     is only appended to a list with keys comes last. In a list without keys that changed,
//     members are visited in the order of their names. The same arguments give the same bytes.
//
// The patch holds no operation without effect, and no copy or test. The number of moves is
// the least possible; that the whole patch is the shortest possible is not promised.
//
// raw must be what after was decoded from. Diff does not decode it once more: that a value does
// not fit the type is noticed only where the values themselves must be compared, and else it is
// replaced, or taken for what the type has there.
//
// It fails with an [*Error] when raw is not a JSON object, has a duplicate name where that matters
// (see [ErrDuplicateName]), or when it would have to guess (see [ErrAlike]); with the encoder's
// error when a value does not encode; and when after is anything but a struct, a map that is not
// nil, or a pointer to one, or encodes to no object. after must not change meanwhile.
func Diff(raw []byte, after any) (Patch, error) {
	p, err := jsondiff.Diff(raw, after, fromOperations)
	return p, converted(err)
}

// fromOperations returns the engine's operations as a patch, nil if there are none.
func fromOperations(ops []jsondiff.Operation) Patch {
	if len(ops) == 0 {
		return nil
	}
	p := make(Patch, len(ops))
	for i, op := range ops {
		p[i] = Operation{Op: Op(op.Op), Path: Pointer(op.Path), From: Pointer(op.From), Value: op.Value}
	}
	return p
}
