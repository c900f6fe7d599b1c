// SPDX-License-Identifier: Apache-2.0

// Package screen is where everything that a command prints goes through.
//
// The rules:
//
//   - What was asked for goes to standard output. Everything else (progress, notes, errors, hints)
//     goes to standard error, so that output can be piped.
//   - An error is one sentence after "admitkit: ", lower case, without a full stop. Hints follow,
//     a line each, after "hint: ": best a command that can be typed.
//   - Errors, hints and notes may name what strangers wrote: it is made visible, so that it moves nothing.
//   - A note is a line after "admitkit: " as well; it says what was chosen where the user did not.
//   - Colour is for terminals only: never with NO_COLOR, TERM=dumb or --color=never, always
//     with --color=always. No meaning is in the colour alone.
//   - Progress is one line that is written over and disappears, on a terminal; elsewhere there is
//     a line now and then.
//   - What is for machines (json, junit, sarif, html) is written whole or not at all.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// A Screen is what a command reads from and prints to. It is not safe for concurrent use, but for
// Progress.
type Screen struct {
	In io.Reader
	// Out takes what was asked for. Use Outputs to let the user choose its form.
	Out io.Writer
	// Err takes everything else; write to it with the methods.
	Err io.Writer
	// Colour is "auto", "always" or "never".
	Colour string
	// Quiet leaves out notes and progress.
	Quiet bool
	// Getenv looks up a variable of the environment.
	Getenv func(string) string
}

// New returns the screen of this process.
func New() *Screen {
	return &Screen{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Colour: "auto", Getenv: os.Getenv}
}

// Note says on standard error, in a line, what the user should know.
func (s *Screen) Note(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintf(s.Err, "admitkit: %s\n", indented(fmt.Sprintf(format, args...), 2))
	}
}

// Problem prints an error with its hints.
func (s *Screen) Problem(err error) {
	p := s.ErrPainter()
	fmt.Fprintf(s.Err, "%s %s\n", p.Red("admitkit:"), indented(strings.TrimSpace(err.Error()), 2))
	for _, hint := range problem.Hints(err) {
		fmt.Fprintf(s.Err, "%s %s\n", p.Bold("hint:"), indented(hint, 6))
	}
}

// indented keeps apart what begins a line: nothing that is told of can look like another message.
func indented(text string, by int) string {
	return strings.ReplaceAll(textutil.Visible(text), "\n", "\n"+strings.Repeat(" ", by))
}

// Painter paints what goes to standard output.
func (s *Screen) Painter() Painter { return Painter{s.colours(s.Out)} }

// ErrPainter paints what goes to standard error.
func (s *Screen) ErrPainter() Painter { return Painter{s.colours(s.Err)} }

// Terminal reports whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns w has; 80 if it is no terminal.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

func (s *Screen) colours(w io.Writer) bool {
	switch s.Colour {
	case "always":
		return true
	case "never":
		return false
	}
	return Terminal(w) && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"
}

// A Painter adds colours, or nothing.
type Painter struct{ On bool }

// Red is for what is wrong.
func (p Painter) Red(text string) string { return p.paint("31", text) }

// Green is for what holds, and for what is added.
func (p Painter) Green(text string) string { return p.paint("32", text) }

// Yellow is for what may be wrong.
func (p Painter) Yellow(text string) string { return p.paint("33", text) }

// Bold is for names and headings.
func (p Painter) Bold(text string) string { return p.paint("1", text) }

// Faint is for what most readers skip.
func (p Painter) Faint(text string) string { return p.paint("2", text) }

func (p Painter) paint(code, text string) string {
	if !p.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
