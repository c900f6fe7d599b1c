// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A differ collects operations. Its methods compare b (before) with a (after) at one place and append the
// operations that turn r (the raw document's value there) into a.
type differ struct {
	ops     []Operation
	untyped bool // no Go type says which merge key a list has
	err     error
}

func (d *differ) result() ([]Operation, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.ops, nil
}

// fail records the first error. Operations that are found after it are dropped.
func (d *differ) fail(at string, err *Error) {
	if d.err == nil {
		d.err = &Error{Pointer: at + err.Pointer, Err: err.Err}
	}
}

// lazyLevels is the depth to which values are opened level by level. Opening one level scans everything
// below it, so deeper down it is cheaper to open all levels at once.
const lazyLevels = 20

// open opens the nodes of several documents at one place.
func (d *differ) open(at string, nodes ...*node) {
	deep := strings.Count(at, "/") >= lazyLevels
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if err := n.open(deep); err != nil {
			d.fail(at, err)
		}
	}
}

func (d *differ) set(at string, present bool, value *node) {
	op := Add
	if present {
		op = Replace
	}
	d.ops = append(d.ops, Operation{Op: op, Path: at, Value: bytes.Clone(value.raw)})
}

func (d *differ) remove(at string) {
	d.ops = append(d.ops, Operation{Op: Remove, Path: at})
}

// value compares two values that both exist. r is nil if raw has no value there.
func (d *differ) value(at string, b, a, r *node, s shape) {
	switch {
	case s.same(b, a), a.kind() == jsonraw.Null && s.isCollection() && b.empty():
	case r == nil:
		d.set(at, false, a)
	case all(jsonraw.Object, b, a, r):
		d.object(at, b, a, r, s)
	case all(jsonraw.Array, b, a, r):
		d.list(at, b, a, r, s)
	default:
		d.set(at, true, a)
	}
}

func all(kind jsonraw.Kind, b, a, r *node) bool {
	return b.kind() == kind && a.kind() == kind && r.kind() == kind
}

var emptyObject = &node{raw: []byte("{}"), kids: &kids{}}

func (d *differ) object(at string, b, a, r *node, s shape) {
	d.open(at, b, a, r)
	mb, ma := b.members(), a.members()
	for len(mb)+len(ma) > 0 {
		var x, y *node
		var name []byte
		order := compareFirst(mb, ma)
		if order <= 0 {
			x, name, mb = &mb[0].node, mb[0].name, mb[1:]
		}
		if order >= 0 {
			y, name, ma = &ma[0].node, ma[0].name, ma[1:]
		}
		if x == nil || y == nil || !same(x, y) {
			d.member(memberPointer(at, string(name)), x, y, r.member(name), s.member(string(name)))
		}
	}
}

// compareFirst compares the first names of two sorted lists of members. An empty list sorts last.
func compareFirst(x, y []member) int {
	switch {
	case len(x) == 0:
		return 1
	case len(y) == 0:
		return -1
	}
	return bytes.Compare(x[0].name, y[0].name)
}

func (d *differ) member(at string, b, a, r *node, s shape) {
	switch {
	case b != nil && a != nil:
		d.value(at, b, a, r, s)
	case a != nil: // b was omitted as empty; raw may still hold an object there, even one with members
		if r != nil && r.kind() == jsonraw.Object && a.kind() == jsonraw.Object {
			d.object(at, emptyObject, a, r, s)
		} else if r == nil || !bytes.Equal(r.raw, a.raw) {
			d.set(at, r != nil, a)
		}
	case r == nil: // already absent
	case s.isInlineStruct() && r.kind() == jsonraw.Object:
		// A struct held by value is omitted when all its known fields are zero. That says nothing
		// about the fields that the type does not know.
		d.object(at, b, emptyObject, r, s)
	default:
		d.remove(at)
	}
}
