// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// skipString stands at the opening quote and leaves the cursor after the closing one.
func (c *Cursor) skipString() error {
	_, err := c.scanString()
	return err
}

// Eight bytes at a time: a byte equal to x turns into zero by xor with x, and zero is found
// by the borrow of a subtraction (the lowest one that is found is exact).
const (
	lowBits   = 0x0101010101010101
	highBits  = 0x8080808080808080
	quotes    = '"' * lowBits
	escapes   = '\\' * lowBits
	controls  = ' ' * lowBits
	wordBytes = 8
)

// special marks in a word the bytes that are a quote, a backslash, a control or not ASCII.
func special(w uint64) uint64 {
	q, e := w^quotes, w^escapes
	return ((q-lowBits)&^q | (e-lowBits)&^e | (w-controls)&^w | w) & highBits
}

// ends is special without what is not ASCII.
func ends(w uint64) uint64 {
	q, e := w^quotes, w^escapes
	return ((q-lowBits)&^q | (e-lowBits)&^e | (w-controls)&^w) & highBits
}

// scanString is skipString; plain tells that the text is what stands between the quotes: it
// has no escape, and is valid UTF-8.
func (c *Cursor) scanString() (plain bool, err error) {
	data := c.data
	for i := c.pos + 1; i+wordBytes <= len(data); i += wordBytes {
		if marks := special(binary.LittleEndian.Uint64(data[i:])); marks != 0 {
			if i += bits.TrailingZeros64(marks) / 8; data[i] == '"' {
				c.pos = i + 1
				return true, nil
			}
			break
		}
	}
	return c.scanOddString()
}

// scanOddString reads what is not only ASCII, or ends with the document, byte by byte.
func (c *Cursor) scanOddString() (plain bool, err error) {
	start := c.pos + 1
	plain = true
	ascii := true
	for i := start; i < len(c.data); {
		switch b := c.data[i]; {
		case b == '"':
			c.pos = i + 1
			return plain && (ascii || utf8.Valid(c.data[start:i])), nil
		case b == '\\':
			plain = false
			if i, err = c.skipEscape(i); err != nil {
				return false, err
			}
		case b < ' ':
			c.pos = i
			return false, c.unexpected("in a string")
		default:
			ascii = ascii && b < utf8.RuneSelf
			i++
		}
	}
	c.pos = len(c.data)
	return false, c.unexpected("in a string")
}

// skipEscape returns the place behind the escape at i.
func (c *Cursor) skipEscape(i int) (int, error) {
	c.pos = i + 1
	if c.pos == len(c.data) {
		return 0, c.unexpected("in a string escape")
	}
	switch c.data[c.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		c.pos++
		for range 4 {
			if c.pos == len(c.data) || !isHex(c.data[c.pos]) {
				return 0, c.unexpected(`in a \u escape`)
			}
			c.pos++
		}
		return i + 6, nil
	}
	return 0, c.unexpected("in a string escape")
}

func (c *Cursor) skipNumber() error {
	if c.at('-') {
		c.pos++
	}
	switch {
	case c.at('0'):
		c.pos++
	case c.digits() == 0:
		return c.unexpected("in a number")
	}
	if c.at('.') {
		c.pos++
		if c.digits() == 0 {
			return c.unexpected("after the decimal point of a number")
		}
	}
	if c.at('e') || c.at('E') {
		c.pos++
		if c.at('+') || c.at('-') {
			c.pos++
		}
		if c.digits() == 0 {
			return c.unexpected("in the exponent of a number")
		}
	}
	return nil
}

func (c *Cursor) digits() int {
	start := c.pos
	for c.pos < len(c.data) && '0' <= c.data[c.pos] && c.data[c.pos] <= '9' {
		c.pos++
	}
	return c.pos - start
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// appendText appends what the inside of a checked string stands for: escapes resolved, invalid
// UTF-8 and lone surrogates replaced by U+FFFD, as encoding/json does.
func appendText(out, s []byte) []byte {
	out = slices.Grow(out, len(s))
	for i := 0; i < len(s); {
		switch b := s[i]; {
		case b == '\\':
			var n int
			out, n = appendEscape(out, s[i:])
			i += n
		case b < utf8.RuneSelf:
			out = append(out, b)
			i++
		default:
			r, size := utf8.DecodeRune(s[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return out
}

// appendEscape appends what the escape at the start of s stands for and returns its length.
func appendEscape(out, s []byte) ([]byte, int) {
	switch s[1] {
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		r := hexRune(s[2:6])
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(out, r), 6
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if pair := utf16.DecodeRune(r, hexRune(s[8:12])); pair != utf8.RuneError {
				return utf8.AppendRune(out, pair), 12
			}
		}
		return utf8.AppendRune(out, utf8.RuneError), 6
	default: // a quote, a slash or a backslash stands for itself
		return append(out, s[1]), 2
	}
}

func hexRune(hex []byte) rune {
	n, err := strconv.ParseUint(string(hex), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
