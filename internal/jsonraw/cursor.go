// SPDX-License-Identifier: Apache-2.0

// Package jsonraw walks JSON text in one validating pass and hands out sub-slices of it.
//
// It accepts exactly what sigs.k8s.io/json accepts, because that is what the API server
// decodes with: RFC 8259 grammar, nesting up to [MaxDepth], duplicate names, and invalid
// UTF-8 inside strings (read as U+FFFD). Nothing is converted unless asked for.
package jsonraw

import (
	"bytes"
	"fmt"
)

// MaxDepth is how deep arrays and objects may nest: the limit of sigs.k8s.io/json.
const MaxDepth = 10_000

// A Kind is what sort of JSON value stands at a place.
type Kind byte

// The kinds of JSON values.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String names the kind as JSON does.
func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}[k]
}

// A SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	// Offset is the number of bytes before the fault.
	Offset int
	msg    string
}

func (e *SyntaxError) Error() string { return e.msg }

// A Cursor stands before a value or after the last one read. The zero value is not usable.
// It is not safe for concurrent use.
type Cursor struct {
	data  []byte
	pos   int
	depth int
}

// NewCursor returns a cursor before the first value of data, which it keeps and never changes.
func NewCursor(data []byte) *Cursor { return &Cursor{data: data} }

// Offset is the number of bytes before the cursor.
func (c *Cursor) Offset() int { return c.pos }

// Kind tells the kind of the next value by its first byte; it does not check the rest.
func (c *Cursor) Kind() Kind {
	c.space()
	if c.pos == len(c.data) {
		return Invalid
	}
	switch b := c.data[c.pos]; {
	case b == 'n':
		return Null
	case b == 't', b == 'f':
		return Bool
	case b == '"':
		return String
	case b == '[':
		return Array
	case b == '{':
		return Object
	case b == '-', '0' <= b && b <= '9':
		return Number
	}
	return Invalid
}

// Value reads the next value, checks it, and returns its bytes with the capacity clipped.
func (c *Cursor) Value() ([]byte, error) {
	c.space()
	start := c.pos
	if err := c.Skip(); err != nil {
		return nil, err
	}
	return c.data[start:c.pos:c.pos], nil
}

// Skip reads the next value and checks it.
func (c *Cursor) Skip() error {
	switch c.Kind() {
	case Object:
		return c.members(nil)
	case Array:
		return c.Elements(func(int) error { return c.Skip() })
	case String:
		return c.skipString()
	case Number:
		return c.skipNumber()
	case Null:
		return c.literal("null")
	case Bool:
		if c.data[c.pos] == 't' {
			return c.literal("true")
		}
		return c.literal("false")
	default:
		return c.unexpected("looking for the beginning of a value")
	}
}

// Members reads the next value, an object, and calls member with each name, in order and
// duplicates included, the cursor before the member's value. member must read that value.
func (c *Cursor) Members(member func(name string) error) error {
	if c.Kind() != Object {
		return c.unexpected("looking for an object")
	}
	return c.members(member)
}

func (c *Cursor) members(member func(name string) error) error {
	if err := c.enter(); err != nil {
		return err
	}
	if c.space(); c.at('}') {
		return c.leave()
	}
	for {
		if c.space(); c.pos == len(c.data) || c.data[c.pos] != '"' {
			return c.unexpected("looking for a member name")
		}
		if err := c.member(member); err != nil {
			return err
		}
		c.space()
		switch {
		case c.at('}'):
			return c.leave()
		case c.at(','):
			c.pos++
		default:
			return c.unexpected("after an object member")
		}
	}
}

func (c *Cursor) member(member func(name string) error) error {
	start := c.pos
	if err := c.skipString(); err != nil {
		return err
	}
	end := c.pos
	if c.space(); !c.at(':') {
		return c.unexpected("after a member name")
	}
	c.pos++
	if member == nil {
		return c.Skip()
	}
	return member(unquote(c.data[start+1 : end-1]))
}

// Elements reads the next value, an array, and calls element with each index, the cursor
// before that element. element must read it.
func (c *Cursor) Elements(element func(i int) error) error {
	if c.Kind() != Array {
		return c.unexpected("looking for an array")
	}
	if err := c.enter(); err != nil {
		return err
	}
	if c.space(); c.at(']') {
		return c.leave()
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		c.space()
		switch {
		case c.at(']'):
			return c.leave()
		case c.at(','):
			c.pos++
		default:
			return c.unexpected("after an array element")
		}
	}
}

// Text reads the next value, a string, and returns what it stands for.
func (c *Cursor) Text() (string, error) {
	if c.Kind() != String {
		return "", c.unexpected("looking for a string")
	}
	start := c.pos
	if err := c.skipString(); err != nil {
		return "", err
	}
	return unquote(c.data[start+1 : c.pos-1]), nil
}

// End checks that only white space is left.
func (c *Cursor) End() error {
	if c.space(); c.pos < len(c.data) {
		return c.unexpected("after the document")
	}
	return nil
}

// IsNull reports whether raw, a checked value, is null or not there at all.
func IsNull(raw []byte) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

func (c *Cursor) at(b byte) bool { return c.pos < len(c.data) && c.data[c.pos] == b }

func (c *Cursor) enter() error {
	if c.depth++; c.depth > MaxDepth {
		return c.errorf("nested deeper than %d levels", MaxDepth)
	}
	c.pos++
	return nil
}

func (c *Cursor) leave() error {
	c.depth--
	c.pos++
	return nil
}

func (c *Cursor) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\n', '\t', '\r':
			c.pos++
		default:
			return
		}
	}
}

func (c *Cursor) literal(want string) error {
	for i := range len(want) {
		if !c.at(want[i]) {
			return c.unexpected("in literal " + want)
		}
		c.pos++
	}
	return nil
}

func (c *Cursor) unexpected(where string) error {
	if c.pos >= len(c.data) {
		return c.errorf("unexpected end of JSON %s", where)
	}
	return c.errorf("unexpected %q %s", c.data[c.pos], where)
}

func (c *Cursor) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: c.pos, msg: fmt.Sprintf(format, args...)}
}

// Since returns the bytes read since the cursor stood at offset, with the capacity clipped.
func (c *Cursor) Since(offset int) []byte { return c.data[offset:c.pos:c.pos] }
