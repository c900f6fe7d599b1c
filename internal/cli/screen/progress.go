// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Progress reports the progress of long work. It is safe for concurrent use.
type Progress struct {
	screen   *Screen
	mu       sync.Mutex
	terminal bool
	every    time.Duration
	now      func() time.Time
	last     time.Time
	shown    bool
}

// Progress starts to report progress. On a terminal it overwrites one line, at most ten times a second.
// Elsewhere it prints a line every 15 seconds. Call Done before anything else is printed.
func (s *Screen) Progress() *Progress {
	p := &Progress{screen: s, terminal: Terminal(s.Err), every: 15 * time.Second, now: time.Now}
	if p.terminal {
		p.every = 100 * time.Millisecond
	} else {
		p.last = p.now() // short work gets no line
	}
	return p
}

// Step sets the text of the progress line.
func (p *Progress) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen.Quiet || p.now().Sub(p.last) < p.every {
		return
	}
	p.last = p.now()
	// The text may quote names of objects and webhooks: it must stay one line and must not move the cursor.
	text := []rune(strings.Map(printableOrSpace, fmt.Sprintf(format, args...)))
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

// printableOrSpace replaces a character that is not printable by a space.
func printableOrSpace(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return ' '
}

// Part sets the text of the progress line, after a bar and the percentage of done in total. If total is not positive,
// Part is the same as Step.
func (p *Progress) Part(done, total int64, format string, args ...any) {
	if total <= 0 {
		p.Step(format, args...)
		return
	}
	const columns = 24
	full := int(min(done, total) * columns / total)
	p.Step("[%s%s] %3d%%  %s", strings.Repeat("=", full), strings.Repeat(" ", columns-full), min(done, total)*100/total, fmt.Sprintf(format, args...))
}

// Done erases the progress line.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.screen.Err, "\r\x1b[K")
		p.shown = false
	}
}
