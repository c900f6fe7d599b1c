// SPDX-License-Identifier: Apache-2.0

// Package body reads request bodies into memory that later calls reuse.
package body

import "io"

// maxFirstBytes is the memory that a client gets for a Content-Length alone, in bytes. A reused
// buffer may be larger.
const maxFirstBytes = 4 << 10

// Read reads a body to its end, or until it has read more than limit bytes. length is the Content-Length, or -1. Read
// uses the memory of buf if it can. It calls reserve before it uses any memory, including buf. After the first 4 KiB,
// it never uses more than four times the bytes that have arrived, except for buf. It uses buf if buf is at most 4 KiB
// large, or at most four times the Content-Length.
func Read(from io.Reader, buf []byte, length, limit int64, reserve func(int64) error) ([]byte, error) {
	rest := func() int {
		if announced := length + 1 - int64(len(buf)); announced > 0 { // one byte more, to see the end
			return int(max(announced, 512))
		}
		return max(len(buf), 512)
	}
	if buf = buf[:0]; cap(buf) > max(4*rest(), maxFirstBytes) {
		buf = nil // otherwise a small body would reserve a large buffer
	}
	size := max(min(rest(), maxFirstBytes), cap(buf))
	if err := reserve(int64(size)); err != nil {
		return nil, err
	}
	if cap(buf) < size {
		buf = make([]byte, 0, size)
	}
	for own := false; ; {
		n, err := from.Read(buf[len(buf):size])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF, int64(len(buf)) > limit:
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == size:
			larger := sizeFor(size+min(rest(), 3*size), 4*size)
			if err := reserve(int64(larger - size)); err != nil {
				return nil, err
			}
			grown := append(allocate(larger), buf...)
			if own {
				Release(buf)
			}
			buf, size, own = grown, larger, true
		}
	}
}
