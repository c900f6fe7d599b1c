// SPDX-License-Identifier: Apache-2.0

package jsonraw

import "math"

// The functions of this file skip values fast. Each returns the offset after the value that starts at i. For unusual or
// invalid text it returns the constant unhandled. Then skipCarefully reads the value again to find the error, if there is
// one. The API server writes no white space, so these functions test for it last.

// unhandled is the result of these functions for text that they do not handle. It is greater than any offset in a document.
const unhandled = math.MaxInt

// mostOpen bounds the nesting of values that skipValue handles.
const mostOpen = 64

// skipValue skips a value that nests at most levels deep.
func (w *window) skipValue(data []byte, i, levels int) int {
	levels = min(levels, mostOpen)
	// open counts the open arrays and objects. inObject has a bit for each, set for an object. The lowest bit is that
	// of the innermost one.
	open, inObject := 0, uint64(0)
	for i < len(data) {
		switch data[i] {
		case '"':
			i = w.skipText(data, i+1)
		case '{':
			if i++; i >= len(data) || open == levels {
				return unhandled
			}
			if data[i] != '}' {
				open, inObject = open+1, inObject<<1|1
				i = w.skipName(data, i)
				continue
			}
			i++
		case '[':
			if i++; i >= len(data) || open == levels {
				return unhandled
			}
			if data[i] != ']' {
				open, inObject = open+1, inObject<<1
				continue
			}
			i++
		case 't':
			i = skipWord(data, i, "true")
		case 'f':
			i = skipWord(data, i, "false")
		case 'n':
			i = skipWord(data, i, "null")
		case ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			i = skipDigits(data, i)
		}
		for open > 0 { // close what ends here, then move to the next value
			if i >= len(data) {
				return unhandled
			}
			if data[i] == ',' {
				if i++; inObject&1 != 0 {
					i = w.skipName(data, i)
				}
				break
			}
			if inObject&1 != 0 && data[i] == '}' || inObject&1 == 0 && data[i] == ']' {
				i, open, inObject = i+1, open-1, inObject>>1
				continue
			}
			if !isSpace(data[i]) {
				return unhandled
			}
			i++
		}
		if open == 0 {
			return i
		}
	}
	return unhandled
}

// skipName skips a member's name and its colon.
func (w *window) skipName(data []byte, i int) int {
	if i < len(data) && data[i] != '"' {
		i = skipSpace(data, i)
	}
	if i >= len(data) || data[i] != '"' {
		return unhandled
	}
	i = w.skipText(data, i+1)
	if i < len(data) && data[i] == ':' {
		return i + 1
	}
	if i = skipSpace(data, i); i < len(data) && data[i] == ':' {
		return i + 1
	}
	return unhandled
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// skipEscape skips one escape.
func skipEscape(data []byte, i int) int {
	switch {
	case data[i] != '\\':
	case i+1 < len(data) && isEscape[data[i+1]]:
		return i + 2
	case i+6 <= len(data) && data[i+1] == 'u' && isHex(data[i+2]) && isHex(data[i+3]) && isHex(data[i+4]) && isHex(data[i+5]):
		return i + 6
	}
	return unhandled
}

// isEscape marks the bytes that may follow a backslash, except u.
var isEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

func skipWord(data []byte, i int, word string) int {
	if end := i + len(word); end <= len(data) && string(data[i:end]) == word {
		return end
	}
	return unhandled
}

// skipDigits skips an integer. Other numbers are rare.
func skipDigits(data []byte, i int) int {
	if i < len(data) && data[i] == '-' {
		i++
	}
	start := i
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	switch {
	case i == start, data[start] == '0' && i > start+1,
		i < len(data) && (data[i] == '.' || data[i] == 'e' || data[i] == 'E'):
		return unhandled
	}
	return i
}
