// SPDX-License-Identifier: Apache-2.0

// Package junit writes reports as CI systems read them.
package junit

import (
	"encoding/xml"
	"io"
	"strings"
)

// The parts of a report that its readers agree on. What is in them may hold anything: Write leaves out what
// XML has no way to say.
type (
	// Suites is the document.
	Suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   Suite    `xml:"testsuite"`
	}
	// A Suite is a list of cases; Write counts them.
	Suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Cases    []Case `xml:"testcase"`
		Out      *Text  `xml:"system-out"`
	}
	// A Case fails if it has failures, or else is skipped, or holds.
	Case struct {
		Class    string    `xml:"classname,attr"`
		Name     string    `xml:"name,attr"`
		File     string    `xml:"file,attr,omitempty"`
		Line     int       `xml:"line,attr,omitempty"`
		Failures []Failure `xml:"failure"`
		Skipped  *Skipped  `xml:"skipped"`
		Out      *Text     `xml:"system-out"`
	}
	// A Failure has a kind, a sentence, and all that is to be told.
	Failure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	// Skipped says why.
	Skipped struct {
		Message string `xml:"message,attr"`
	}
	// Text is what a case, or the suite, printed.
	Text struct {
		Text string `xml:",cdata"`
	}
)

// Write writes a suite, after counting its cases.
func Write(w io.Writer, s Suite) error {
	s.clean()
	s.Tests, s.Failures, s.Skipped = len(s.Cases), 0, 0
	for _, c := range s.Cases {
		switch {
		case len(c.Failures) > 0:
			s.Failures++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(Suites{Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *Suite) clean() {
	s.Name = printable(s.Name)
	s.Out.clean()
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Class, c.Name, c.File = printable(c.Class), printable(c.Name), printable(c.File)
		for j := range c.Failures {
			f := &c.Failures[j]
			f.Type, f.Message, f.Text = printable(f.Type), printable(f.Message), printable(f.Text)
		}
		if c.Skipped != nil {
			c.Skipped.Message = printable(c.Skipped.Message)
		}
		c.Out.clean()
	}
}

func (t *Text) clean() {
	if t != nil {
		t.Text = printable(t.Text)
	}
}

// printable leaves out what XML has no way to say.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == '\uFFFE' || c == '\uFFFF' {
			return -1
		}
		return c
	}, text)
}
