// SPDX-License-Identifier: Apache-2.0

// Package lines reads the lines of logs in bounded memory.
package lines

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// Chunk is the size of a read in bytes.
const Chunk = 256 << 10

// Decompress returns a reader of the text of in, which may be compressed with gzip.
func Decompress(in io.Reader) (*bufio.Reader, error) {
	buffered := bufio.NewReaderSize(in, Chunk)
	if magic, _ := buffered.Peek(2); len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, nil // later reads return the same error
	}
	expanded, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(expanded, Chunk), nil
}

// A Reader reads lines of any length. It drops the text of lines that are longer than Limit bytes. It is not safe for
// concurrent use.
type Reader struct {
	In    *bufio.Reader
	Limit int
	whole []byte // the current line, if it is longer than the buffer of In
}

// A Line is one line. Its text is valid until Next is called again.
type Line struct {
	Text    []byte // without the newline
	TooLong bool   // longer than the limit; Text is empty
	Ended   bool   // ends with a newline
}

// Next returns the next line, or io.EOF.
func (r *Reader) Next() (Line, error) {
	if cap(r.whole) > 4*Chunk {
		r.whole = nil // release the memory of a long line
	}
	r.whole = r.whole[:0]
	tooLong, something := false, false
	for {
		part, err := r.In.ReadSlice('\n')
		something = something || len(part) > 0
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && (!errors.Is(err, io.EOF) || !something) {
				return Line{}, err
			}
			got := Line{TooLong: tooLong || len(r.whole)+len(part) > r.Limit, Ended: err == nil}
			switch {
			case got.TooLong:
			case len(r.whole) == 0:
				got.Text = bytes.TrimRight(part, "\r\n")
			default:
				got.Text = bytes.TrimRight(append(r.whole, part...), "\r\n")
			}
			return got, nil
		}
		if tooLong = tooLong || len(r.whole)+len(part) > r.Limit; !tooLong {
			r.whole = append(r.whole, part...)
		}
	}
}
