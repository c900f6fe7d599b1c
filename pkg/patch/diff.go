// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/admitkit/admitkit/internal/jsonraw"
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

func diffDocuments(raw, before, after []byte, t reflect.Type) (Patch, error) {
	var docs [3]*node
	for i, doc := range [3][]byte{raw, before, after} {
		n, err := parse(doc)
		if err != nil {
			return nil, err
		}
		if n.kind != jsonraw.Object {
			return nil, &Error{Err: fmt.Errorf("want an object, got %s", n.kind)}
		}
		docs[i] = n
	}
	var d differ
	d.object("", docs[1], docs[2], docs[0], shapeOf(t))
	if d.err != nil {
		return nil, d.err
	}
	return d.ops, nil
}

// A differ collects operations. Its methods compare b (before) with a (after) at one place
// and write what turns r (what is in the raw document there) into the wanted value.
type differ struct {
	ops Patch
	err error
}

func (d *differ) set(at Pointer, present bool, value *node) {
	op := Add
	if present {
		op = Replace
	}
	d.ops = append(d.ops, Operation{Op: op, Path: at, Value: value.raw})
}

func (d *differ) remove(at Pointer) {
	d.ops = append(d.ops, Operation{Op: Remove, Path: at})
}

// value compares two values that are both there; r is nil when raw has nothing.
func (d *differ) value(at Pointer, b, a, r *node, s shape) {
	switch {
	case s.same(b, a), a.kind == jsonraw.Null && b.empty() && s.isCollection():
	case r == nil:
		d.set(at, false, a)
	case a.kind == jsonraw.Object && b.kind == jsonraw.Object && r.kind == jsonraw.Object:
		d.object(at, b, a, r, s)
	case a.kind == jsonraw.Array && b.kind == jsonraw.Array && r.kind == jsonraw.Array && len(r.elems) == len(b.elems):
		d.list(at, b, a, r, s)
	default:
		d.set(at, true, a)
	}
}

var emptyObject = &node{kind: jsonraw.Object, raw: []byte("{}")}

func (d *differ) object(at Pointer, b, a, r *node, s shape) {
	names := slices.Collect(maps.Keys(b.members))
	for name := range a.members {
		if b.members[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if mb, ma := b.members[name], a.members[name]; mb == nil || ma == nil || !same(mb, ma) {
			d.member(at.Append(name), mb, ma, r.members[name], s.member(name))
		}
	}
}

func (d *differ) member(at Pointer, b, a, r *node, s shape) {
	switch {
	case b != nil && a != nil:
		d.value(at, b, a, r, s)
	case a != nil: // b was left out as empty; raw may still hold an object there, even a full one
		if r != nil && r.kind == jsonraw.Object && a.kind == jsonraw.Object {
			d.object(at, emptyObject, a, r, s)
		} else if r == nil || !bytes.Equal(r.raw, a.raw) {
			d.set(at, r != nil, a)
		}
	case r == nil: // already gone
	case s.isInlineStruct() && r.kind == jsonraw.Object:
		// A struct held by value is left out when all its known fields are zero: that says
		// nothing about the others.
		d.object(at, b, emptyObject, r, s)
	default:
		d.remove(at)
	}
}
