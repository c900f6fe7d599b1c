// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// longest is how much of a line is kept.
const longest = 64 << 10

// lines is a writer that hands on whole lines. What is left without an end is handed on by flush.
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
		l.hand()
		p = rest
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.left) > 0 {
		l.hand()
	}
}

func (l *lines) hand() {
	line := strings.TrimSuffix(string(l.left), "\r")
	l.left = l.left[:0]
	l.each(line)
}

// to hands lines on to a writer, each in one piece and one at a time.
func to(w io.Writer) func(string) {
	var mu sync.Mutex
	return func(line string) {
		if w == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(w, line+"\n") // whoever reads the log may be gone
	}
}
