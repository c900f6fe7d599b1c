// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/binary"
	"math/bits"
)

// A window marks, in 64 bytes of a document, those that ends marks: one bit each, so that the end
// of a text is found by looking at bits. Most texts are short, and to look at their bytes one word
// after the other means to wait for where the last one ended.
//
// The zero window is nowhere. A window is good for one document, and for what is behind the last
// place it was asked about.
type window struct {
	end   int // of the 64 bytes
	marks uint64
}

const windowBytes = 64

// skipText starts behind the opening quote.
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
			if i = skipMarked(data, i); i == wrong {
				return wrong
			}
			continue
		}
		if i+windowBytes > len(data) {
			return skipShortText(data, i)
		}
		w.end, w.marks = i+windowBytes, marksOf(data[i:i+windowBytes])
	}
}

// skipPlain is skipText for a text without escapes. It is wrong about any other, and about one
// near the end of the document.
func (w *window) skipPlain(data []byte, i int) int {
	for {
		if left := w.end - i; left > 0 {
			marks := w.marks >> (windowBytes - left)
			if marks == 0 {
				i = w.end
				continue
			}
			if i += bits.TrailingZeros64(marks); data[i] != '"' {
				return wrong
			}
			return i + 1
		}
		if i+windowBytes > len(data) {
			return wrong
		}
		w.end, w.marks = i+windowBytes, marksOf(data[i:i+windowBytes])
	}
}

// skipMarked goes over an escape, or a byte that is marked because of the one before it.
func skipMarked(data []byte, i int) int {
	if data[i] > ' ' && data[i] != '\\' {
		return i + 1
	}
	return skipEscape(data, i)
}

// skipShortText is skipText where less than a window is left.
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
	return wrong
}

// marksOf gathers the marks of eight words.
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

// gather makes eight bits of the high bits of eight bytes.
func gather(marks uint64) uint64 {
	const toTheTop = 0x0102040810204080
	return marks >> 7 * toTheTop >> 56
}
