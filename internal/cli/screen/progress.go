// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Progress tells how far long work has come. Its methods may be called from several goroutines.
type Progress struct {
	screen   *Screen
	mu       sync.Mutex
	terminal bool
	every    time.Duration
	now      func() time.Time
	last     time.Time
	shown    bool
}

// Progress begins to tell of work. On a terminal the line is written over ten times a second at
// the most; elsewhere a line appears every 15 seconds. End it with Done, before anything else is
// printed.
func (s *Screen) Progress() *Progress {
	p := &Progress{screen: s, terminal: Terminal(s.Err), every: 15 * time.Second, now: time.Now}
	if p.terminal {
		p.every = 100 * time.Millisecond
	} else {
		p.last = p.now() // what is quick needs no line
	}
	return p
}

// Step says how far it is.
func (p *Progress) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen.Quiet || p.now().Sub(p.last) < p.every {
		return
	}
	p.last = p.now()
	// The line may name what strangers wrote: it stays one line, and moves nothing.
	text := []rune(strings.Map(printable, fmt.Sprintf(format, args...)))
	if !p.terminal {
		p.screen.Note("%s", string(text))
		return
	}
	if width := Width(p.screen.Err); len(text) >= width {
		text = text[:width-1]
	}
	fmt.Fprintf(p.screen.Err, "\r\x1b[K%s", string(text))
	p.shown = true
}

func printable(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return ' '
}

// Part is Step for work of which the size is known.
func (p *Progress) Part(done, total int64, format string, args ...any) {
	if total <= 0 {
		p.Step(format, args...)
		return
	}
	const columns = 24
	full := int(min(done, total) * columns / total)
	p.Step("[%s%s] %3d%%  %s", strings.Repeat("=", full), strings.Repeat(" ", columns-full), min(done, total)*100/total, fmt.Sprintf(format, args...))
}

// Done takes the line away.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.screen.Err, "\r\x1b[K")
		p.shown = false
	}
}
