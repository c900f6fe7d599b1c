// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// An Event is an event other than an admission, as -o json prints it.
type Event struct {
	// Event is "ready", "rebuilt", "buildFailed", "crashed" or "applyFailed".
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	// Kubeconfig is the kubeconfig file of the local API server; only in the event ready.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Server is the version of the API server.
	Server string `json:"server,omitempty"`
	// Webhooks are the names of the registered webhooks.
	Webhooks []string `json:"webhooks,omitempty"`
	// Registered reports whether the registration has changed.
	Registered   bool    `json:"registered,omitempty"`
	Message      string  `json:"message,omitempty"`
	Milliseconds float64 `json:"milliseconds,omitempty"`

	text string // for the output format text
}

// A printer prints events and admissions in order, without delaying calls. If the terminal is too slow, the printer drops
// lines and counts them.
type printer struct {
	s    *screen.Screen
	json bool
	now  func() time.Time

	mu    sync.Mutex
	queue chan func()
	lost  int
	ended chan struct{}
}

func newPrinter(s *screen.Screen, asJSON bool) *printer {
	p := &printer{s: s, json: asJSON, now: time.Now, queue: make(chan func(), 1000), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for write := range p.queue {
			write()
		}
	}()
	return p
}

// close prints the remaining lines.
func (p *printer) close() {
	close(p.queue)
	<-p.ended
}

func (p *printer) put(write func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.queue <- write:
		if p.lost > 0 {
			lost := p.lost
			p.lost = 0
			p.queue <- func() { p.s.Note("%d lines were dropped, because the output is too slow", lost) }
		}
	default:
		p.lost++
	}
}

func (p *printer) admission(a *Admission) {
	p.put(func() {
		if p.json {
			p.line(a)
			return
		}
		width := math.MaxInt // only terminals have a width
		if screen.Terminal(p.s.Out) {
			width = screen.Width(p.s.Out)
		}
		_, _ = io.WriteString(p.s.Out, a.text(p.s.Painter(), width)) // an error means that the output was closed
	})
}

func (p *printer) event(e Event) {
	e.Time = p.now()
	p.put(func() {
		if p.json {
			p.line(e)
			return
		}
		if e.text != "" {
			fmt.Fprintln(p.s.Out, e.text)
		}
	})
}

// problem prints an event with an error below it.
func (p *printer) problem(event, sentence string, err error) {
	e := Event{Event: event, Message: err.Error(), Time: p.now()}
	p.put(func() {
		if p.json {
			p.line(e)
			return
		}
		paint := p.s.Painter()
		text := clock(paint, e.Time) + paint.Red(sentence) + "\n" + indented(err.Error())
		for _, hint := range problem.Hints(err) {
			text += indented("hint: " + hint)
		}
		_, _ = io.WriteString(p.s.Out, text) // an error means that the output was closed
	})
}

// notApplied prints that an object of --apply was not applied. If a hook denied the object, notApplied leaves out the
// reason, which dev prints with the call of the hook.
func (p *printer) notApplied(where, deniedBy string, err error) {
	if deniedBy == "" {
		p.problem("applyFailed", "not applied", err)
		return
	}
	p.event(Event{Event: "applyFailed", Message: err.Error(),
		text: clock(p.s.Painter(), p.now()) + p.s.Painter().Yellow("not applied") + "  " + where + ": denied by " + deniedBy})
}

func (p *printer) line(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Appendf(nil, `{"event":"lost","message":%q}`, err)
	}
	fmt.Fprintf(p.s.Out, "%s\n", text)
}

// Write prints output of the hooks.
func (p *printer) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		line = withoutControls(strings.TrimRight(line, "\r\n"))
		p.put(func() {
			fmt.Fprintf(p.s.Err, "%s\n", p.s.ErrPainter().Faint("  | "+line))
		})
	}
	return len(text), nil
}

const margins = "         " // as wide as the result of clock

func clock(paint screen.Painter, t time.Time) string {
	return paint.Faint(t.Local().Format("15:04:05")) + " "
}

func indented(text string) string {
	var all strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		all.WriteString(margins + withoutControls(strings.TrimRight(line, "\n")) + "\n")
	}
	return all.String()
}

// text returns the line of a call, and below it the diff, the message and the warnings.
func (a *Admission) text(paint screen.Painter, width int) string {
	var all strings.Builder
	all.WriteString(clock(paint, a.Time) + a.Outcome.painted(paint))
	column := len(margins) + len("mutated")
	for i, part := range a.parts() {
		plain := withoutControls(part)
		if column+2+len(plain) > width && i > 0 {
			all.WriteString("\n" + margins + "       ")
			column = len(margins) + len("mutated")
		}
		column += 2 + len(plain)
		if i == 0 {
			plain = paint.Bold(plain)
		}
		all.WriteString("  " + plain)
	}
	all.WriteString("\n")
	for _, l := range diff(a.before, a.after) {
		text := withoutControls(l.text)
		switch l.mark {
		case '+':
			text = paint.Green("+ " + text)
		case '-':
			text = paint.Red("- " + text)
		case '…':
			text = paint.Faint("  " + text)
		default:
			text = "  " + text
		}
		all.WriteString(margins + text + "\n")
	}
	if a.Message != "" {
		all.WriteString(indented(a.messageWithCode()))
	}
	for _, w := range a.Warnings {
		all.WriteString(margins + paint.Yellow("warning:") + " " + withoutControls(w) + "\n")
	}
	return all.String()
}

func (o CallResult) painted(paint screen.Painter) string {
	text := fmt.Sprintf("%-7s", string(o))
	switch o {
	case Mutated:
		return paint.Green(text)
	case Denied:
		return paint.Yellow(text)
	case Failed:
		return paint.Red(text)
	}
	return text
}

// parts returns the parts of the line about a call, in order. text breaks the line only between parts.
func (a *Admission) parts() []string {
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	if a.Group != "" {
		resource += "." + a.Group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	name := a.Name
	if a.Namespace != "" {
		name = a.Namespace + "/" + name
	}
	parts := []string{a.Webhook, strings.TrimSpace(a.Operation + " " + resource + " " + name)}
	if a.User != "" {
		parts = append(parts, "by "+a.User)
	}
	parts = append(parts, fmt.Sprintf("%.1f ms", a.Milliseconds))
	if a.BeforeChange {
		parts = append(parts, fmt.Sprintf("answered by the previous hooks after waiting %.1f s for the build", a.WaitedMilliseconds/1000))
	} else if a.WaitedMilliseconds > 0 {
		parts = append(parts, fmt.Sprintf("waited %.1f s for the build", a.WaitedMilliseconds/1000))
	}
	if a.Round > 1 {
		parts = append(parts, fmt.Sprintf("reinvoked: round %d", a.Round))
	}
	if a.DryRun {
		parts = append(parts, "dry run")
	}
	return parts
}

func (a *Admission) messageWithCode() string {
	if a.Outcome == Denied {
		return fmt.Sprintf("%d: %s", a.Code, a.Message)
	}
	return a.Message
}

// withoutControls replaces control characters, which a terminal would execute, by U+FFFD.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || !unicode.IsControl(r) {
			return r
		}
		return '�'
	}, text)
}
