// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file are the fast way over values that nobody wants to see. Each
// returns the offset behind what starts at i, or wrong as soon as something is unusual: then
// the careful way looks again, and names the fault if there is one.
const wrong = -1

// skipValue goes over a value that may nest so many levels deep.
func skipValue(data []byte, i, levels int) int {
	if i = skipSpace(data, i); i == len(data) {
		return wrong
	}
	switch data[i] {
	case '"':
		return skipText(data, i+1)
	case '{':
		return skipMembers(data, i+1, levels-1)
	case '[':
		return skipElements(data, i+1, levels-1)
	case 't':
		return skipWord(data, i, "true")
	case 'f':
		return skipWord(data, i, "false")
	case 'n':
		return skipWord(data, i, "null")
	default:
		return skipDigits(data, i)
	}
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' {
		if b := data[i]; b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			break
		}
		i++
	}
	return i
}

// skipText starts behind the opening quote.
func skipText(data []byte, i int) int {
	for ; i+wordBytes <= len(data); i += wordBytes {
		if marks := ends(binary.LittleEndian.Uint64(data[i:])); marks != 0 {
			i += bits.TrailingZeros64(marks) / 8
			if data[i] == '"' {
				return i + 1
			}
			return skipOddText(data, i)
		}
	}
	return skipOddText(data, i)
}

// skipOddText goes on where a text has an escape, or where less than a word is left.
func skipOddText(data []byte, i int) int {
	for i < len(data) {
		switch b := data[i]; {
		case b == '"':
			return i + 1
		case b == '\\':
			c := Cursor{data: data}
			next, err := c.skipEscape(i)
			if err != nil {
				return wrong
			}
			return skipText(data, next)
		case b < ' ':
			return wrong
		}
		i++
	}
	return wrong
}

// skipMembers starts behind the opening brace.
func skipMembers(data []byte, i, levels int) int {
	if i = skipSpace(data, i); levels < 0 || i == len(data) {
		return wrong
	}
	if data[i] == '}' {
		return i + 1
	}
	for {
		if i = skipSpace(data, i); i == len(data) || data[i] != '"' {
			return wrong
		}
		if i = skipText(data, i+1); i == wrong {
			return wrong
		}
		if i = skipSpace(data, i); i == len(data) || data[i] != ':' {
			return wrong
		}
		if i = skipValue(data, i+1, levels); i == wrong {
			return wrong
		}
		if i = skipSpace(data, i); i == len(data) {
			return wrong
		}
		switch data[i] {
		case '}':
			return i + 1
		case ',':
			i++
		default:
			return wrong
		}
	}
}

// skipElements starts behind the opening bracket.
func skipElements(data []byte, i, levels int) int {
	if i = skipSpace(data, i); levels < 0 || i == len(data) {
		return wrong
	}
	if data[i] == ']' {
		return i + 1
	}
	for {
		if i = skipValue(data, i, levels); i == wrong {
			return wrong
		}
		if i = skipSpace(data, i); i == len(data) {
			return wrong
		}
		switch data[i] {
		case ']':
			return i + 1
		case ',':
			i++
		default:
			return wrong
		}
	}
}

func skipWord(data []byte, i int, word string) int {
	if end := i + len(word); end <= len(data) && string(data[i:end]) == word {
		return end
	}
	return wrong
}

// skipDigits goes over an integer; other numbers are rare.
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
		return wrong
	}
	return i
}
