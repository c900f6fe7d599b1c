// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// skipString stands at the opening quote and leaves the cursor after the closing one.
func (c *Cursor) skipString() error {
	c.pos++
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; {
		case b == '"':
			c.pos++
			return nil
		case b == '\\':
			if err := c.skipEscape(); err != nil {
				return err
			}
		case b < ' ':
			return c.unexpected("in a string")
		default:
			c.pos++
		}
	}
	return c.unexpected("in a string")
}

func (c *Cursor) skipEscape() error {
	c.pos++
	if c.pos == len(c.data) {
		return c.unexpected("in a string escape")
	}
	switch c.data[c.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.pos++
		return nil
	case 'u':
		c.pos++
		for range 4 {
			if c.pos == len(c.data) || !isHex(c.data[c.pos]) {
				return c.unexpected(`in a \u escape`)
			}
			c.pos++
		}
		return nil
	}
	return c.unexpected("in a string escape")
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

// unquote turns the inside of a checked string into text: escapes resolved, invalid UTF-8
// and lone surrogates replaced by U+FFFD, as encoding/json does.
func unquote(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s)
	}
	out := make([]byte, 0, len(s))
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
	return string(out)
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
