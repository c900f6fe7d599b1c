// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"bytes"
	"reflect"
	"slices"
	"sync"

	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/jsonraw"
	shapes "github.com/admitkit/admitkit/internal/shape"
)

// A node is one value of a document. Its members or elements are read on demand, because most of a
// document did not change.
type node struct {
	raw []byte // checked, and without white space around it
	// hash is 0 if one encoder wrote all documents, so that equal values have equal bytes. Otherwise
	// all spellings of a value have the same hash.
	hash uint64
	kids *kids // nil until the node is opened
}

// kids are the members of an object or the elements of an array.
type kids struct {
	members []member // in the order of their names
	elems   []node
}

type member struct {
	name []byte
	node
}

func (n *node) kind() jsonraw.Kind {
	c := jsonraw.At(n.raw, 0, 0)
	return c.Kind()
}

// empty reports whether n is null, {} or [].
func (n *node) empty() bool {
	c := jsonraw.At(n.raw, 0, 0)
	more := true
	switch c.Kind() {
	case jsonraw.Null:
		return true
	case jsonraw.Object:
		more, _ = c.OpenObject()
	case jsonraw.Array:
		more, _ = c.OpenArray()
	}
	return !more
}

// members returns the members of an opened object, and nil for everything else.
func (n *node) members() []member {
	if n == nil || n.kids == nil {
		return nil
	}
	return n.kids.members
}

func (n *node) elems() []node {
	if n == nil || n.kids == nil {
		return nil
	}
	return n.kids.elems
}

func (n *node) member(name []byte) *node {
	members := n.members()
	i, found := slices.BinarySearchFunc(members, name, func(m member, name []byte) int {
		return bytes.Compare(m.name, name)
	})
	if !found {
		return nil
	}
	return &members[i].node
}

// find returns the named member of an object, which need not be open.
func (n *node) find(name string) (*node, bool) {
	if n.kids != nil {
		m := n.member([]byte(name))
		return m, m != nil
	}
	if n.kind() != jsonraw.Object {
		return nil, false
	}
	c := jsonraw.At(n.raw, 0, 0)
	more, err := c.OpenObject()
	for more && err == nil {
		text, _ := c.Name() // cannot fail: the name was checked
		if string(text) == name {
			raw, err := c.Value()
			return &node{raw: raw}, err == nil
		}
		if err = c.Skip(); err == nil {
			more, err = c.NextMember()
		}
	}
	return nil, false
}

// encodeValue encodes v as encoding/json does inside its parent. If v is addressable, encoding/json also calls methods
// with a pointer receiver.
func encodeValue(v reflect.Value) ([]byte, error) {
	room := encodings.Get().(*[]byte)
	out, err := encode.Append((*room)[:0], v, shapes.Of(v.Type()))
	if err != nil {
		return nil, err
	}
	text := bytes.Clone(out)
	if cap(out) <= mostPooledText {
		*room = out
	}
	encodings.Put(room)
	return text, nil
}

var encodings = sync.Pool{New: func() any { return new([]byte) }}

// mostPooledText bounds the memory that a pooled buffer keeps after a large value.
const mostPooledText = 1 << 20

// parse reads a whole document, whose values may be spelt in several ways.
func parse(doc []byte) (*node, error) {
	p := parser{c: jsonraw.At(doc, 0, 0), deep: true, hashed: true}
	if len(p.c.Rest()) == 0 {
		return nil, &Error{Err: errEmpty}
	}
	n, err := p.value(true)
	if err == nil {
		err = p.c.End()
	}
	if err != nil {
		return nil, &Error{Pointer: p.pointer(), Err: err}
	}
	return &n, nil
}

// large is the size in bytes from which a value is read twice, to allocate exactly.
const large = 64 << 10

// open reads the members or elements of n, and everything below them if deep is set. The pointer of an
// error is relative to n.
func (n *node) open(deep bool) *Error {
	if n.kids != nil {
		return nil
	}
	p := parser{c: jsonraw.At(n.raw, 0, 0), deep: deep}
	if len(n.raw) >= large && !deep {
		p.reserve()
	}
	var err error
	if n.kids, err = p.inside(); err != nil {
		n.kids = &kids{}
		return &Error{Pointer: p.pointer(), Err: err}
	}
	return nil
}

// A parser keeps the path to the current value, which is cheaper than a pointer per value.
type parser struct {
	c      jsonraw.Cursor
	deep   bool // open every value below the first one
	hashed bool
	path   []step
	// Members and elements of the objects and arrays that are still being read, the outer ones first.
	members []member
	elems   []node
}

// A step leads to a member by name or to an element by index.
type step struct {
	name  []byte
	index int
	elem  bool
}

func (p *parser) pointer() string {
	at := ""
	for _, s := range p.path {
		if s.elem {
			at = elementPointer(at, s.index)
		} else {
			at = memberPointer(at, string(s.name))
		}
	}
	return at
}

func (p *parser) value(open bool) (n node, err error) {
	p.c.Kind() // steps over white space
	start := p.c.Offset()
	if open {
		n.kids, err = p.inside()
	} else {
		err = p.c.Skip()
	}
	n.raw = p.c.Since(start)
	if p.hashed && err == nil {
		n.hash = hashOf(&n)
	}
	return n, err
}

func (p *parser) inside() (*kids, error) {
	switch p.c.Kind() {
	case jsonraw.Object:
		members, err := p.object()
		return &kids{members: members}, err
	case jsonraw.Array:
		elems, err := p.array()
		return &kids{elems: elems}, err
	}
	return nil, p.c.Skip()
}

func (p *parser) object() ([]member, error) {
	outer := len(p.members)
	more, err := p.c.OpenObject()
	for more && err == nil {
		var m member
		if m.name, err = p.c.Name(); err != nil {
			break
		}
		if m.node, err = p.below(step{name: m.name}); err != nil {
			break
		}
		p.members = append(withRoom(p.members), m)
		more, err = p.c.NextMember()
	}
	if err != nil {
		return nil, err
	}
	members := p.members[outer:]
	if p.members = p.members[:outer]; p.deep {
		members = slices.Clone(members) // the next object reuses their memory
	}
	return members, p.sort(members)
}

// sort sorts the members by name and fails on a duplicate name.
func (p *parser) sort(members []member) error {
	byName := func(x, y member) int { return bytes.Compare(x.name, y.name) }
	if !slices.IsSortedFunc(members, byName) {
		slices.SortFunc(members, byName)
	}
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].name, members[i].name) {
			p.path = append(p.path, step{name: members[i].name})
			return ErrDuplicateName
		}
	}
	return nil
}

func (p *parser) array() ([]node, error) {
	outer := len(p.elems)
	more, err := p.c.OpenArray()
	for i := 0; more && err == nil; i++ {
		var n node
		if n, err = p.below(step{index: i, elem: true}); err == nil {
			p.elems = append(withRoom(p.elems), n)
			more, err = p.c.NextElement()
		}
	}
	if err != nil {
		return nil, err
	}
	elems := p.elems[outer:]
	if p.elems = p.elems[:outer]; p.deep {
		elems = slices.Clone(elems)
	}
	return elems, nil
}

// withRoom doubles the capacity of a full slice. append grows large slices by less and so makes more
// garbage.
func withRoom[T any](list []T) []T {
	if len(list) == cap(list) {
		return slices.Grow(list, len(list)+4)
	}
	return list
}

// reserve counts the members or elements of the next value and allocates memory for exactly that many.
func (p *parser) reserve() {
	c, n := p.c, 0
	switch c.Kind() {
	case jsonraw.Object:
		more, err := c.OpenObject()
		for ; more && err == nil; n++ {
			if _, err = c.Name(); err == nil {
				err = c.Skip()
			}
			if err == nil {
				more, err = c.NextMember()
			}
		}
		p.members = make([]member, 0, n)
	case jsonraw.Array:
		more, err := c.OpenArray()
		for ; more && err == nil; n++ {
			if err = c.Skip(); err == nil {
				more, err = c.NextElement()
			}
		}
		p.elems = make([]node, 0, n)
	}
}

// below reads the value one step down. After an error the path stays, so that it names the location of the error.
func (p *parser) below(s step) (node, error) {
	p.path = append(p.path, s)
	n, err := p.value(p.deep)
	if err == nil {
		p.path = p.path[:len(p.path)-1]
	}
	return n, err
}
