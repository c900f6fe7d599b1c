// SPDX-License-Identifier: Apache-2.0

package patch

import "github.com/admitkit/admitkit/internal/jsondiff"

// Diff returns the patch that turns raw into after. after is the value that raw was decoded into, with or without later
// changes. It is a struct, a map such as the Object of an Unstructured, or a pointer to one of these. The rules, in
// order:
//
//  1. Diff compares the value that raw decodes to with after, both as encoding/json encodes them. It compares
//     quantities by value and times by instant. Nil and empty are equal if omitempty omits both, and nil
//     never replaces an empty list or map, except behind a pointer, where they differ. Diff never touches members
//     that the type does not know.
//  2. Without a difference the patch is nil. Otherwise its operations, applied to raw in order (RFC 6902), give
//     a document that decodes to after.
//  3. A member is added if raw lacks it, replaced if it differs, and removed if after omits it. If raw has an
//     object, only its differing members are touched. If raw has nothing or null for a parent, the
//     whole parent is written.
//  4. List elements are matched by merge key: the field's patchMergeKey tag, else "name", if every element has a
//     distinct key. Other lists are matched by equal elements first. Then a new object that shares at least half of its
//     members with a removed one counts as an edit of that object; the pairs that share the most members are matched
//     first. If hundreds of elements changed, each is compared with its neighbours only. Between two matches, an
//     element in the place of a removed one counts as an edit of that element, except in a list of objects whose
//     members the type knows completely. It is an error if a list lost one of several elements that differ only in
//     fields that the type does not know: see [ErrAlike].
//  5. Matched elements keep every field that the type does not know: they are edited in place, and moved if
//     their order changed. Elements without a match are removed or added.
//  6. Members are visited in raw's order, then those that raw lacks: struct fields in the type's order, map entries in
//     the order of their keys. In a list, removals come first, from the back; then moves and additions, from the front;
//     then edits. Elements that are appended to a list with keys come last. In a changed list without keys, members are
//     visited in the order of their names. Equal arguments give equal bytes.
//
// The patch holds no operation without effect, and no Copy or Test. It has the least possible number of moves, but
// need not be the shortest possible patch.
//
// Diff does not decode raw again. It notices a value of raw that does not fit the Go type only where it has to compare
// the value. Elsewhere it replaces the value, or leaves it as if it were equal to the field in after.
//
// Diff fails with an [*Error] if raw is not a JSON object, has a duplicate name that matters (see
// [ErrDuplicateName]), or leaves a removal ambiguous (see [ErrAlike]); with the encoder's error if a value cannot be
// encoded; and if after is not a struct, a map that is not nil, or a pointer to one, or does not encode to an
// object. after must not change during the call.
func Diff(raw []byte, after any) (Patch, error) {
	p, err := jsondiff.Diff(raw, after, fromOperations)
	return p, converted(err)
}

// fromOperations returns the operations of package jsondiff as a patch, or nil if there are none.
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
