// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A screen prints the output of the demo for people to read. Colours only repeat what the text says.
type screen struct {
	w      io.Writer
	colour bool
}

// wantsColour reports whether f is a terminal and NO_COLOR (https://no-color.org) is not set.
func wantsColour(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

const (
	bold  = "1"
	red   = "31"
	green = "32"
	blue  = "34"
)

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) progress(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

func (s *screen) title(text string) { fmt.Fprintf(s.w, "\n%s\n\n", s.paint(bold, text)) }

func (s *screen) command(line string) { fmt.Fprintln(s.w, s.paint(blue, "$ "+line)) }

// text shows the output of a command unchanged.
func (s *screen) text(text string) { fmt.Fprint(s.w, text) }

func (s *screen) diff(lines []string) {
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			line = s.paint(green, line)
		case strings.HasPrefix(line, "-"):
			line = s.paint(red, line)
		}
		fmt.Fprintln(s.w, line)
	}
}
