// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"math/bits"
)

// A window has one bit for each of 64 bytes of a document. The bit is set if the function ends marks the byte. skipText
// looks for the end of a string in these bits. Most strings are short, so testing them word by word would make the
// processor wait at the end of each.
//
// The zero window covers nothing. A window serves one document and only moves forward.
type window struct {
	end   int // offset after the 64 bytes
	marks uint64
}

const windowBytes = 64

// skipText skips a string from the byte after its opening quote.
func (w *window) skipText(data []byte, i int) int {
	for {
		if left := w.end - i; left > 0 {
			marks := w.marks >> (windowBytes - left)
			if marks == 0 {
				i = w.end
				continue
			}
			if i += bits.TrailingZeros64(marks); data[i] == '"' {
				return i + 1
			}
			if i = skipMarked(data, i); i == unhandled {
				return unhandled
			}
			continue
		}
		if i+windowBytes > len(data) {
			return skipShortText(data, i)
		}
		w.end, w.marks = i+windowBytes, marksOf(data[i:i+windowBytes])
	}
}

// skipPlain is skipText for a string without escapes. It returns the constant unhandled for other strings, and near the end
// of the document.
func (w *window) skipPlain(data []byte, i int) int {
	for {
		if left := w.end - i; left > 0 {
			marks := w.marks >> (windowBytes - left)
			if marks == 0 {
				i = w.end
				continue
			}
			if i += bits.TrailingZeros64(marks); data[i] != '"' {
				return unhandled
			}
			return i + 1
		}
		if i+windowBytes > len(data) {
			return unhandled
		}
		w.end, w.marks = i+windowBytes, marksOf(data[i:i+windowBytes])
	}
}

// skipMarked skips an escape. It also skips a byte that the function ends has marked by mistake, because of a borrow.
func skipMarked(data []byte, i int) int {
	if data[i] > ' ' && data[i] != '\\' {
		return i + 1
	}
	return skipEscape(data, i)
}

// skipShortText is skipText for the last bytes of a document, which do not fill a window.
func skipShortText(data []byte, i int) int {
	for i < len(data) && data[i] >= ' ' {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i = skipEscape(data, i)
		default:
			i++
		}
	}
	return unhandled
}

// marksOf returns one bit for each byte of the eight words at the start of data. The bit is set if the function ends
// marks the byte.
func marksOf(data []byte) (marks uint64) {
	_ = data[windowBytes-1]
	marks = gather(ends(binary.LittleEndian.Uint64(data[0:])))
	marks |= gather(ends(binary.LittleEndian.Uint64(data[8:]))) << 8
	marks |= gather(ends(binary.LittleEndian.Uint64(data[16:]))) << 16
	marks |= gather(ends(binary.LittleEndian.Uint64(data[24:]))) << 24
	marks |= gather(ends(binary.LittleEndian.Uint64(data[32:]))) << 32
	marks |= gather(ends(binary.LittleEndian.Uint64(data[40:]))) << 40
	marks |= gather(ends(binary.LittleEndian.Uint64(data[48:]))) << 48
	marks |= gather(ends(binary.LittleEndian.Uint64(data[56:]))) << 56
	return marks
}

// gather packs the high bits of eight bytes into one byte.
func gather(marks uint64) uint64 {
	const toTheTop = 0x0102040810204080
	return marks >> 7 * toTheTop >> 56
}
