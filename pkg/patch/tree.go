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
