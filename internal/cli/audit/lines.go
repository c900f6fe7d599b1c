// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// longest is the maximum length of a line in bytes. At level RequestResponse an event has the whole response, which can
// have many megabytes for a list.
const longest = 32 << 20

// lines is a reader for lines of any length. It drops the text of lines that are longer than limit bytes.
type lines struct {
	in    *bufio.Reader
	limit int
	whole []byte // the current line, if it is longer than the buffer of in
}

// A line is one line of a log. Its text is valid until next is called again.
type line struct {
	text    []byte
	tooLong bool // longer than the limit; text is empty
	ended   bool // ends with a newline
}

// next returns the next line, or io.EOF.
func (l *lines) next() (line, error) {
	if cap(l.whole) > 4*chunk {
		l.whole = nil // release the memory of a long line
	}
	l.whole = l.whole[:0]
	tooLong, something := false, false
	for {
		part, err := l.in.ReadSlice('\n')
		something = something || len(part) > 0
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && (!errors.Is(err, io.EOF) || !something) {
				return line{}, err
			}
			got := line{tooLong: tooLong || len(l.whole)+len(part) > l.limit, ended: err == nil}
			switch {
			case got.tooLong:
			case len(l.whole) == 0:
				got.text = bytes.TrimRight(part, "\r\n")
			default:
				got.text = bytes.TrimRight(append(l.whole, part...), "\r\n")
			}
			return got, nil
		}
		if tooLong = tooLong || len(l.whole)+len(part) > l.limit; !tooLong {
			l.whole = append(l.whole, part...)
		}
	}
}
