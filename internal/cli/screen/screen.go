// SPDX-License-Identifier: Apache-2.0

// Package screen prints all output of the commands.
//
// The rules:
//
//   - Results go to standard output. Progress, notes, errors and hints go to standard error, so that
//     results can be piped.
//   - An error is one sentence after "admitkit: ", in lower case and without a full stop. Hints follow
//     after "hint: ", one per line. The best hint is a command that can be pasted.
//   - Errors, hints and notes may quote text from objects and webhooks. Its control characters are
//     escaped, so that they cannot move the cursor or forge a message.
//   - A note is also a line after "admitkit: ". It reports a choice that the user did not make.
//   - Only terminals get colours: never with NO_COLOR, TERM=dumb or --color=never, always with
//     --color=always. Colour alone carries no meaning.
//   - On a terminal, progress is one line that is overwritten and then erased. Elsewhere, a line is
//     printed every 15 seconds.
//   - Output for programs (json, junit, sarif, html) is written completely or not at all.
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

// A Screen has the standard streams of a command. Only Progress is safe for concurrent use.
type Screen struct {
	In io.Reader
	// Out receives the results. Outputs lets the user choose their form.
	Out io.Writer
	// Err receives everything else, through the methods of Screen.
	Err io.Writer
	// Colour is the value of --color: "auto", "always" or "never".
	Colour string
	// Quiet suppresses notes and progress.
	Quiet bool
	// Getenv returns the value of an environment variable.
	Getenv func(string) string
}

// New returns a Screen with the standard streams of this process.
func New() *Screen {
	return &Screen{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Colour: "auto", Getenv: os.Getenv}
}

// Note prints a line for the user on standard error.
func (s *Screen) Note(format string, args ...any) {
	if !s.Quiet {
		fmt.Fprintf(s.Err, "admitkit: %s\n", indented(fmt.Sprintf(format, args...), 2))
	}
}

// Problem prints an error and its hints on standard error.
func (s *Screen) Problem(err error) {
	p := s.ErrPainter()
	fmt.Fprintf(s.Err, "%s %s\n", p.Red("admitkit:"), indented(strings.TrimSpace(err.Error()), 2))
	for _, hint := range problem.Hints(err) {
		fmt.Fprintf(s.Err, "%s %s\n", p.Bold("hint:"), indented(hint, 6))
	}
}

// indented escapes text and indents all lines but the first, so that no line of it looks like another message.
func indented(text string, by int) string {
	return strings.ReplaceAll(textutil.Visible(text), "\n", "\n"+strings.Repeat(" ", by))
}

// Painter returns the Painter for standard output.
func (s *Screen) Painter() Painter { return Painter{s.colours(s.Out)} }

// ErrPainter returns the Painter for standard error.
func (s *Screen) ErrPainter() Painter { return Painter{s.colours(s.Err)} }

// Terminal reports whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the number of columns of w, or 80 if it is not a terminal.
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

// A Painter colours text if it is on. Otherwise it returns text unchanged.
type Painter struct{ On bool }

// Red marks errors and removed lines.
func (p Painter) Red(text string) string { return p.paint("31", text) }

// Green marks success and added lines.
func (p Painter) Green(text string) string { return p.paint("32", text) }

// Yellow marks warnings and undecided results.
func (p Painter) Yellow(text string) string { return p.paint("33", text) }

// Bold marks names and headings.
func (p Painter) Bold(text string) string { return p.paint("1", text) }

// Faint marks less important text, such as details below a heading.
func (p Painter) Faint(text string) string { return p.paint("2", text) }

func (p Painter) paint(code, text string) string {
	if !p.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
