// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A node is a JSON value. A tree of nodes keeps the order of members, duplicate names and the spelling of numbers.
type node struct {
	kind   jsonraw.Kind
	text   string   // of a string: its text; of a number, a boolean or null: as written
	names  []string // of an object: the names of its members
	kids   []node   // the elements of an array, or the values of the members
	nested *node    // of a string that holds a JSON document: that document
	done   bool     // text must not be replaced again
}

// member returns the last member with a name, or nil.
func (n *node) member(name string) *node {
	if n == nil {
		return nil
	}
	for i := len(n.names) - 1; i >= 0; i-- {
		if n.names[i] == name {
			return &n.kids[i]
		}
	}
	return nil
}

// str returns the text of a member that is a string, or "".
func (n *node) str(name string) string {
	if m := n.member(name); m != nil && m.kind == jsonraw.String {
		return m.text
	}
	return ""
}

// strings calls yield for each string in n.
func (n *node) strings(yield func(string)) {
	if n.kind == jsonraw.String {
		yield(n.text)
	}
	for i := range n.kids {
		n.kids[i].strings(yield)
	}
}

// plain returns the text of a string.
func (n *node) plain() string {
	if n.nested != nil {
		return string(n.nested.appendTo(nil))
	}
	return n.text
}

// isText reports whether n is a string or a number, so that it could hold a secret.
func (n *node) isText() bool { return n.kind == jsonraw.String || n.kind == jsonraw.Number }

// A parser builds trees. Its limit bounds the memory of all its trees: a node needs many times the memory of a short
// value such as 0.
type parser struct {
	texts jsonraw.Texts
	nodes int
}

// parse returns the tree of a document.
func (p *parser) parse(data []byte) (*node, error) {
	c := jsonraw.NewCursor(data)
	n := &node{}
	if err := p.value(c, n); err != nil {
		return nil, err
	}
	if err := c.End(); err != nil {
		return nil, err
	}
	return n, nil
}

func (p *parser) value(c *jsonraw.Cursor, n *node) error {
	if p.nodes++; p.nodes > MaxValues {
		return fmt.Errorf("%w: more than %d values", ErrTooLarge, MaxValues)
	}
	n.kind = c.Kind()
	switch n.kind {
	case jsonraw.Object:
		more, err := c.OpenObject()
		for more && err == nil {
			var name []byte
			if name, err = c.Name(); err != nil {
				return err
			}
			n.names = append(n.names, p.texts.Text(name))
			if err = p.element(c, n); err != nil {
				return err
			}
			more, err = c.NextMember()
		}
		return err
	case jsonraw.Array:
		more, err := c.OpenArray()
		for more && err == nil {
			if err = p.element(c, n); err != nil {
				return err
			}
			more, err = c.NextElement()
		}
		return err
	case jsonraw.String:
		text, err := c.TextBytes()
		n.text = p.texts.Text(text)
		return err
	default:
		text, err := c.Value()
		n.text = p.texts.Text(text)
		return err
	}
}

func (p *parser) element(c *jsonraw.Cursor, n *node) error {
	n.kids = append(n.kids, node{})
	return p.value(c, &n.kids[len(n.kids)-1])
}

// appendTo appends the JSON text of n to dst.
func (n *node) appendTo(dst []byte) []byte {
	switch n.kind {
	case jsonraw.Object:
		dst = append(dst, '{')
		for i := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonraw.AppendString(dst, n.names[i]), ':')
			dst = n.kids[i].appendTo(dst)
		}
		return append(dst, '}')
	case jsonraw.Array:
		dst = append(dst, '[')
		for i := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = n.kids[i].appendTo(dst)
		}
		return append(dst, ']')
	case jsonraw.String:
		return jsonraw.AppendString(dst, n.plain())
	default:
		return append(dst, n.text...)
	}
}
