// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// ErrDuplicateName is the cause of an [Error] about an object that holds one name twice.
// Appliers see the last such member only, decoders may merge them, so no patch is certain to
// mean the same to both. The API server never sends such objects.
var ErrDuplicateName = errors.New("duplicate name")

// ErrAlike is the cause of an [Error] about a list from which one of several elements was
// taken that are equal to the Go type but not in the document, so that nothing tells which. A
// projection should name the member that tells the elements of a list apart.
var ErrAlike = errors.New("elements look alike to the Go type, so it is not known which of them is to go")

// An Error says where a document could not be compared.
type Error struct {
	// Pointer is the place in the document.
	Pointer Pointer
	// Err is the cause: [ErrDuplicateName], [ErrAlike], or a syntax error.
	Err error
}

func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Pointer.FieldPath(), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// A node is one value of a parsed document.
type node struct {
	kind    jsonraw.Kind
	raw     []byte
	members map[string]*node
	elems   []*node
}

// encode writes a Go value as a document. The same value always gives the same document.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parse reads a document into nodes that are sub-slices of it.
func parse(doc []byte) (*node, error) {
	p := parser{c: jsonraw.NewCursor(doc)}
	n, err := p.value()
	if err == nil {
		err = p.c.End()
	}
	if err != nil {
		return nil, &Error{Pointer: p.pointer(), Err: err}
	}
	return n, nil
}

// A parser keeps the way to the value that it reads, which costs less than a pointer for each.
type parser struct {
	c    *jsonraw.Cursor
	path []step
}

// A step goes to a member by its name, or to an element by its index.
type step struct {
	name  string
	index int
	elem  bool
}

func (p *parser) pointer() Pointer {
	var b strings.Builder
	for _, s := range p.path {
		if s.elem {
			s.name = strconv.Itoa(s.index)
		}
		b.WriteString("/" + escapeToken.Replace(s.name))
	}
	return Pointer(b.String())
}

func (p *parser) value() (*node, error) {
	n := &node{kind: p.c.Kind()}
	start := p.c.Offset()
	var err error
	switch n.kind {
	case jsonraw.Object:
		n.members = map[string]*node{}
		err = p.c.Members(func(name string) error {
			member, err := p.below(step{name: name}, n.members[name])
			n.members[name] = member
			return err
		})
	case jsonraw.Array:
		err = p.c.Elements(func(i int) error {
			elem, err := p.below(step{index: i, elem: true}, nil)
			n.elems = append(n.elems, elem)
			return err
		})
	default:
		err = p.c.Skip()
	}
	n.raw = p.c.Since(start)
	return n, err
}

// below reads the value one step down. On an error the path stays, to tell the place.
func (p *parser) below(s step, earlier *node) (*node, error) {
	p.path = append(p.path, s)
	if earlier != nil {
		return nil, ErrDuplicateName
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	p.path = p.path[:len(p.path)-1]
	return n, nil
}

// empty reports whether n is null, {} or [].
func (n *node) empty() bool {
	switch n.kind {
	case jsonraw.Null:
		return true
	case jsonraw.Object:
		return len(n.members) == 0
	case jsonraw.Array:
		return len(n.elems) == 0
	}
	return false
}

// same compares documents that one encoder wrote: equal values have equal bytes.
func same(x, y *node) bool { return bytes.Equal(x.raw, y.raw) }
