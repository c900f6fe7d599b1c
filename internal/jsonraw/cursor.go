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
	room  []byte // for texts with escapes
	ahead window
}

// NewCursor returns a cursor before the first value of data, which it keeps and never changes.
func NewCursor(data []byte) *Cursor { return &Cursor{data: data} }

// At returns a cursor before the value at offset in data, inside depth arrays and objects.
func At(data []byte, offset, depth int) Cursor { return Cursor{data: data, pos: offset, depth: depth} }

// Seek makes c what At returns, but for the memory it has, as long as that is not a lot.
func (c *Cursor) Seek(data []byte, offset, depth int) {
	room := c.room
	if cap(room) > mostRoom {
		room = nil
	}
	*c = Cursor{data: data, pos: offset, depth: depth, room: room}
}

const mostRoom = 64 << 10

// Offset is the number of bytes before the cursor.
func (c *Cursor) Offset() int { return c.pos }

// Rest returns what is left to read, but for white space before it.
func (c *Cursor) Rest() []byte {
	c.space()
	return c.data[c.pos:]
}

// Advance steps over n bytes that the caller knows: the name of a member and its colon.
func (c *Cursor) Advance(n int) { c.pos += n }

// Kind tells the kind of the next value by its first byte; it does not check the rest.
func (c *Cursor) Kind() Kind {
	c.space()
	if c.pos == len(c.data) {
		return Invalid
	}
	return kinds[c.data[c.pos]]
}

// kinds tells the kind of a value by its first byte.
var kinds = [256]Kind{
	'n': Null, 't': Bool, 'f': Bool, '"': String, '[': Array, '{': Object, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
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
	if end := c.ahead.skipValue(c.data, c.pos, MaxDepth-c.depth); end != wrong {
		c.pos = end
		return nil
	}
	return c.skipCarefully()
}

// skipCarefully is Skip for any value, and tells what is wrong with it.
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

// OpenObject steps into the next value, an object, and reports whether a member follows:
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

// NextMember steps to the next member, or out of the object.
func (c *Cursor) NextMember() (more bool, err error) {
	if c.at(',') {
		c.pos++
		return true, nil
	}
	return c.next('}', "after an object member")
}

// OpenArray is OpenObject for an array.
func (c *Cursor) OpenArray() (more bool, err error) {
	if c.Kind() != Array {
		return false, c.unexpected("looking for an array")
	}
	return c.open(']')
}

// NextElement steps to the next element, or out of the array.
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

// Name reads the name of a member and the colon behind it. The name is a sub-slice of the
// document where that is the text itself, which it nearly always is.
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

// Members reads the next value, an object, and calls member with each name, in order and
// duplicates included, the cursor before the member's value. member must read that value.
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

// Elements reads the next value, an array, and calls element with each index, the cursor
// before that element. element must read it.
func (c *Cursor) Elements(element func(i int) error) error {
	more, err := c.OpenArray()
	for i := 0; more && err == nil; i++ {
		if err = element(i); err == nil {
			more, err = c.NextElement()
		}
	}
	return err
}

// TextBytes reads the next value, a string, and returns what it stands for. The bytes are good
// until the next call, and are a sub-slice of the document where that is the text itself.
func (c *Cursor) TextBytes() ([]byte, error) {
	text, _, err := c.Text()
	return text, err
}

// Text is TextBytes, and tells whether the text stands as it is between the quotes.
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

// Since returns the bytes read since the cursor stood at offset, with the capacity clipped.
func (c *Cursor) Since(offset int) []byte { return c.data[offset:c.pos:c.pos] }
