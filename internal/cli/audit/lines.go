// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// longest is how long a line may be. At level RequestResponse an event has the whole answer in it,
// which for a list may be many megabytes.
const longest = 32 << 20

// lines reads lines of any length, but keeps no more of them than limit.
type lines struct {
	in    *bufio.Reader
	limit int
	whole []byte // of a line that is longer than in's buffer
}

// A line is good until the next one is read.
type line struct {
	text    []byte
	tooLong bool // text is missing
	ended   bool // by a newline
}

// next returns the next line, or io.EOF.
func (l *lines) next() (line, error) {
	if cap(l.whole) > 4*chunk {
		l.whole = nil // one long line is no reason to keep that much
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
