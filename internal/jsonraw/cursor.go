// SPDX-License-Identifier: Apache-2.0

// Package jsonraw walks JSON text in one validating pass and returns sub-slices of it.
//
// It accepts exactly what the API server's decoder, sigs.k8s.io/json, accepts: the grammar of RFC 8259,
// nesting up to [MaxDepth], duplicate names, and invalid UTF-8 in strings (read as U+FFFD). It
// converts values only on request.
package jsonraw

import (
	"bytes"
	"fmt"
)

// MaxDepth is the maximum nesting of arrays and objects, as in sigs.k8s.io/json.
const MaxDepth = 10_000

// A Kind is the type of a JSON value.
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

// String returns the name of the kind in JSON, such as "object" or "boolean".
func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}[k]
}

// Noun returns the kind with its article, for messages: "an object", "a string", "null".
func (k Kind) Noun() string {
	switch k {
	case Null:
		return "null"
	case Object, Array:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}

// A SyntaxError reports the offset at which a text stops being JSON.
type SyntaxError struct {
	// Offset is the number of bytes before the fault.
	Offset int
	msg    string
}

func (e *SyntaxError) Error() string { return e.msg }

// A Cursor is a position in JSON text, before a value or after the last one read. [NewCursor] and [At] return
// one. It is not safe for concurrent use.
type Cursor struct {
	data  []byte
	pos   int
	depth int
	room  []byte // buffer for strings with escapes
	ahead window
}

// NewCursor returns a cursor before the first value of data. It keeps data and never changes it.
func NewCursor(data []byte) *Cursor { return &Cursor{data: data} }

// At returns a cursor before the value at an offset of data. depth is the number of arrays and objects around the
// value.
func At(data []byte, offset, depth int) Cursor { return Cursor{data: data, pos: offset, depth: depth} }

// Seek moves c to where [At] would put a new cursor. It keeps the buffer of c unless that is large.
func (c *Cursor) Seek(data []byte, offset, depth int) {
	room := c.room
	if cap(room) > mostRoom {
		room = nil
	}
	*c = Cursor{data: data, pos: offset, depth: depth, room: room}
}

const mostRoom = 64 << 10

// Offset returns the number of bytes before the cursor.
func (c *Cursor) Offset() int { return c.pos }

// Rest skips white space and returns the unread bytes.
func (c *Cursor) Rest() []byte {
	c.space()
	return c.data[c.pos:]
}

// Advance skips n bytes that the caller has checked, such as a member's name and colon.
func (c *Cursor) Advance(n int) { c.pos += n }

// Kind returns the kind of the next value by its first byte. It does not check the value.
func (c *Cursor) Kind() Kind {
	c.space()
	if c.pos == len(c.data) {
		return Invalid
	}
	return kinds[c.data[c.pos]]
}

// kinds maps the first byte of a value to its kind.
var kinds = [256]Kind{
	'n': Null, 't': Bool, 'f': Bool, '"': String, '[': Array, '{': Object, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

// Value checks the next value and returns its bytes, with the capacity clipped.
func (c *Cursor) Value() ([]byte, error) {
	c.space()
	start := c.pos
	if err := c.Skip(); err != nil {
		return nil, err
	}
	return c.data[start:c.pos:c.pos], nil
}

// Skip checks the next value and moves past it.
func (c *Cursor) Skip() error {
	if end := c.ahead.skipValue(c.data, c.pos, MaxDepth-c.depth); end != unhandled {
		c.pos = end
		return nil
	}
	return c.skipCarefully()
}

// skipCarefully does what Skip does, without fast paths, and returns the exact error.
func (c *Cursor) skipCarefully() error {
	switch c.Kind() {
	case Object:
		more, err := c.OpenObject()
		for more && err == nil {
			if err = c.skipName(); err == nil {
				err = c.skipCarefully()
			}
			if err == nil {
				more, err = c.NextMember()
			}
		}
		return err
	case Array:
		more, err := c.OpenArray()
		for more && err == nil {
			if err = c.skipCarefully(); err == nil {
				more, err = c.NextElement()
			}
		}
		return err
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

// OpenObject moves into the next value, an object, and reports whether it has a member:
//
//	more, err := c.OpenObject()
//	for more && err == nil {
//		name, err := c.Name()
//		… // read the value
//		more, err = c.NextMember()
//	}
func (c *Cursor) OpenObject() (more bool, err error) {
	if c.Kind() != Object {
		return false, c.unexpected("looking for an object")
	}
	return c.open('}')
}

// NextMember moves to the next member and reports true, or moves past the object and reports false.
func (c *Cursor) NextMember() (more bool, err error) {
	if c.at(',') {
		c.pos++
		return true, nil
	}
	return c.next('}', "after an object member")
}

// OpenArray moves into the next value, an array, and reports whether it has an element.
func (c *Cursor) OpenArray() (more bool, err error) {
	if c.Kind() != Array {
		return false, c.unexpected("looking for an array")
	}
	return c.open(']')
}

// NextElement moves to the next element and reports true, or moves past the array and reports false.
func (c *Cursor) NextElement() (more bool, err error) {
	if c.at(',') {
		c.pos++
		return true, nil
	}
	return c.next(']', "after an array element")
}

func (c *Cursor) open(end byte) (more bool, err error) {
	if c.depth++; c.depth > MaxDepth {
		return false, c.errorf("nested deeper than %d levels", MaxDepth)
	}
	c.pos++
	if c.space(); c.at(end) {
		c.pos++
		c.depth--
		return false, nil
	}
	return true, nil
}

func (c *Cursor) next(end byte, where string) (more bool, err error) {
	c.space()
	switch {
	case c.at(','):
		c.pos++
		return true, nil
	case c.at(end):
		c.pos++
		c.depth--
		return false, nil
	}
	return false, c.unexpected(where)
}

// Name reads a member's name and its colon. The name is a sub-slice of the document unless it has
// escapes.
func (c *Cursor) Name() ([]byte, error) {
	inside, plain, err := c.name()
	if err == nil && !plain {
		inside = appendText(nil, inside)
	}
	return inside, err
}

func (c *Cursor) skipName() error {
	_, _, err := c.name()
	return err
}

func (c *Cursor) name() (inside []byte, plain bool, err error) {
	if c.space(); !c.at('"') {
		return nil, false, c.unexpected("looking for a member name")
	}
	start := c.pos + 1
	if plain, err = c.scanString(); err != nil {
		return nil, false, err
	}
	inside = c.data[start : c.pos-1]
	if !c.at(':') {
		if c.space(); !c.at(':') {
			return nil, false, c.unexpected("after a member name")
		}
	}
	c.pos++
	return inside, plain, nil
}

// Members reads the next value, an object. It calls member with each name in order, duplicates included, while
// the cursor is before the member's value. member must read that value.
func (c *Cursor) Members(member func(name string) error) error {
	more, err := c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = c.Name(); err == nil {
			err = member(string(name))
		}
		if err == nil {
			more, err = c.NextMember()
		}
	}
	return err
}

// Elements reads the next value, an array. It calls element with each index while the cursor is before that
// element. element must read it.
func (c *Cursor) Elements(element func(i int) error) error {
	more, err := c.OpenArray()
	for i := 0; more && err == nil; i++ {
		if err = element(i); err == nil {
			more, err = c.NextElement()
		}
	}
	return err
}

// TextBytes reads the next value, a string, and returns its text, valid until the next call. The text is a
// sub-slice of the document unless the string has escapes.
func (c *Cursor) TextBytes() ([]byte, error) {
	text, _, err := c.Text()
	return text, err
}

// Text returns what [Cursor.TextBytes] returns, and reports whether the string has no escapes.
func (c *Cursor) Text() (text []byte, plain bool, err error) {
	if c.Kind() != String {
		return nil, false, c.unexpected("looking for a string")
	}
	start := c.pos + 1
	if plain, err = c.scanString(); err != nil {
		return nil, false, err
	}
	if text = c.data[start : c.pos-1]; !plain {
		c.room = appendText(c.room[:0], text)
		text = c.room
	}
	return text, plain, nil
}

// End fails unless only white space is left.
func (c *Cursor) End() error {
	if c.space(); c.pos < len(c.data) {
		return c.unexpected("after the document")
	}
	return nil
}

// IsNull reports whether raw, a checked value, is null or empty.
func IsNull(raw []byte) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

func (c *Cursor) at(b byte) bool { return c.pos < len(c.data) && c.data[c.pos] == b }

func (c *Cursor) space() {
	if c.pos < len(c.data) && c.data[c.pos] <= ' ' {
		c.skipSpace()
	}
}

func (c *Cursor) skipSpace() {
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

// Since returns the bytes between offset and the cursor, with the capacity clipped.
func (c *Cursor) Since(offset int) []byte { return c.data[offset:c.pos:c.pos] }
