// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// longest is the number of bytes after which a line is cut.
const longest = 64 << 10

// lines is an io.Writer that passes every complete line to the function in its field each. flush passes on an
// incomplete last line.
type lines struct {
	mu   sync.Mutex
	left []byte
	each func(line string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := longest - len(l.left); room < len(line) {
			line = line[:room]
		}
		l.left = append(l.left, line...)
		if !whole {
			return n, nil
		}
		l.emit()
		p = rest
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.left) > 0 {
		l.emit()
	}
}

func (l *lines) emit() {
	line := strings.TrimSuffix(string(l.left), "\r")
	l.left = l.left[:0]
	l.each(line)
}

// to returns a function that writes each line to w with one call. The function is safe for concurrent use.
func to(w io.Writer) func(string) {
	var mu sync.Mutex
	return func(line string) {
		if w == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(w, line+"\n") // the reader of the log may have closed it
	}
}
