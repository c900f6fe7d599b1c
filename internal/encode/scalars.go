// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

var errNotANumber = errors.New("NaN and infinity cannot be written as JSON")

// appendFloat writes a number as JavaScript does: with an exponent only if it would have more than 21 digits or
// more than 6 zeros after the point.
func appendFloat(out []byte, f float64, bits int) ([]byte, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errNotANumber
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 {
		if bits == 64 && (abs < 1e-6 || abs >= 1e21) || bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	}
	out = strconv.AppendFloat(out, f, format, -1, bits)
	if n := len(out); format == 'e' && n >= 4 && string(out[n-4:n-1]) == "e-0" {
		out[n-2] = out[n-1] // e-7, not e-07
		out = out[:n-1]
	}
	return out, nil
}

func appendBytes(out, b []byte) []byte {
	if b == nil {
		return appendNull(out)
	}
	out = append(out, '"')
	out = base64.StdEncoding.AppendEncode(out, b)
	return append(out, '"')
}

const hex = "0123456789abcdef"

// appendText quotes a string. Bytes that are not UTF-8 become U+FFFD. U+2028 and U+2029 are escaped, as in
// encoding/json.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	start := 0 // offset of the text that is not appended yet
	for i := 0; ; {
		i = skipPlain(s, i)
		if i == len(s) {
			break
		}
		b, size := s[i], 1
		if b < utf8.RuneSelf {
			out = append(out, s[start:i]...)
			out = appendEscape(out, b)
		} else {
			var r rune
			switch r, size = utf8.DecodeRuneInString(s[i:]); {
			case r == utf8.RuneError && size == 1:
				out = append(out, s[start:i]...)
				out = append(out, `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				out = append(out, s[start:i]...)
				out = append(out, `\u202`...)
				out = append(out, hex[r&0xf])
			default:
				i += size
				continue
			}
		}
		i += size
		start = i
	}
	out = append(out, s[start:]...)
	return append(out, '"')
}

func appendEscape(out []byte, b byte) []byte {
	switch b {
	case '\\', '"':
		return append(out, '\\', b)
	case '\b':
		return append(out, '\\', 'b')
	case '\f':
		return append(out, '\\', 'f')
	case '\n':
		return append(out, '\\', 'n')
	case '\r':
		return append(out, '\\', 'r')
	case '\t':
		return append(out, '\\', 't')
	}
	return append(out, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xf])
}

// skipPlain returns the index of the first byte at or after i that is not ASCII or needs an escape, or the
// length of s.
func skipPlain(s string, i int) int {
	for ; i+8 <= len(s) && isPlain(s[i:i+8]); i += 8 {
	}
	for ; i < len(s); i++ {
		if b := s[i]; b < ' ' || b >= utf8.RuneSelf || b == '"' || b == '\\' {
			break
		}
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// isPlain checks eight bytes at once. It may return false for plain bytes, because a borrow of the subtraction
// makes the bytes above it look smaller.
func isPlain(s string) bool {
	w := binary.LittleEndian.Uint64([]byte(s))
	quote, backslash := w^'"'*ones, w^'\\'*ones
	return (w|(w-' '*ones)|(quote-ones)|(backslash-ones))&highs == 0
}
