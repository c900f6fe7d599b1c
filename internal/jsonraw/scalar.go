// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// skipString moves from the opening quote past the closing one.
func (c *Cursor) skipString() error {
	_, err := c.scanString()
	return err
}

// The functions below test eight bytes at once. The function less finds bytes that are less than a limit: subtracting
// the limit from each byte sets the high bit of a smaller byte. First it flips bit 1 of each byte, which swaps the
// quote (0x22) and the space. After that, exactly the quotes and control characters are less than 0x21. For
// backslashes, an xor turns them into zero, the only byte less than 1. The borrow of a subtraction can set wrong high
// bits only above the lowest correct one, so the lowest high bit is exact.
const (
	lowBits   = 0x0101010101010101
	highBits  = 0x80 * lowBits
	wordBytes = 8
)

// ends sets the high bit of each byte of a word that is a quote, a backslash or a control character.
func ends(w uint64) uint64 { return less(w) &^ w & highBits }

// special sets the high bit of the same bytes as ends, and of bytes that are not ASCII.
func special(w uint64) uint64 { return (less(w) | w) & highBits }

func less(w uint64) uint64 {
	return ((w ^ 0x02*lowBits) - 0x21*lowBits) | ((w ^ '\\'*lowBits) - lowBits)
}

// scanString is like skipString, but it also reports whether the string is plain: without escapes and valid
// UTF-8.
func (c *Cursor) scanString() (plain bool, err error) {
	data, i := c.data, c.pos+1
	for ; i+wordBytes <= len(data); i += wordBytes {
		if marks := special(binary.LittleEndian.Uint64(data[i:])); marks != 0 {
			if i += bits.TrailingZeros64(marks) / 8; data[i] == '"' {
				c.pos = i + 1
				return true, nil
			}
			break
		}
	}
	return c.scanOddString(i)
}

// scanOddString continues at i, for a string that is not ASCII or that the document's end cuts off.
func (c *Cursor) scanOddString(i int) (plain bool, err error) {
	start := c.pos + 1
	plain, ascii := true, true
	for i < len(c.data) {
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
			i += max(plainRun(c.data[i:]), 1)
		}
	}
	c.pos = len(c.data)
	return false, c.unexpected("in a string")
}

// plainRun returns how many leading bytes of text are certainly ASCII without quotes, backslashes and control
// characters. It does not look at the last few bytes.
func plainRun(text []byte) (n int) {
	for n+wordBytes <= len(text) {
		marks := special(binary.LittleEndian.Uint64(text[n:]))
		if marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
		n += wordBytes
	}
	return n
}

// skipEscape returns the offset after the escape at i.
func (c *Cursor) skipEscape(i int) (int, error) {
	if end := skipEscape(c.data, i); end != unhandled {
		return end, nil
	}
	c.pos = i + 1
	if !c.at('u') {
		return 0, c.unexpected("in a string escape")
	}
	for c.pos++; c.pos < len(c.data) && isHex(c.data[c.pos]); {
		c.pos++
	}
	return 0, c.unexpected(`in a \u escape`)
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

func isHex(b byte) bool { return hexValue[b] >= 0 }

// hexValue holds the value of each hexadecimal digit, and -1 for all other bytes.
var hexValue = func() (table [256]int8) {
	for b := range table {
		table[b] = -1
	}
	for value, digit := range "0123456789abcdef" {
		table[digit] = int8(value)
		table[unicode.ToUpper(digit)] = int8(value)
	}
	return table
}()

// appendText appends the text of a checked string. It resolves escapes, and replaces invalid UTF-8 and
// lone surrogates with U+FFFD, as encoding/json does.
func appendText(out, s []byte) []byte {
	out = slices.Grow(out, len(s))
	for i := 0; i < len(s); {
		switch b := s[i]; {
		case b == '\\':
			var n int
			out, n = appendEscape(out, s[i:])
			i += n
		case b < utf8.RuneSelf:
			n := max(plainRun(s[i:]), 1)
			out = append(out, s[i:i+n]...)
			i += n
		default:
			r, size := utf8.DecodeRune(s[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return out
}

// appendEscape appends the character of the escape at the start of s and returns the escape's length.
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
	default: // an escaped quote, slash or backslash
		return append(out, s[1]), 2
	}
}

func hexRune(hex []byte) (r rune) {
	for _, b := range hex {
		r = r<<4 | rune(hexValue[b])
	}
	return r
}
