// SPDX-License-Identifier: Apache-2.0

// Package junit writes reports in the JUnit XML format, which CI systems read.
package junit

import (
	"encoding/xml"
	"io"
	"strings"
)

// These are the elements that all readers of JUnit XML support. Their text may have any characters, because Write
// removes those that XML cannot represent.
type (
	// Suites is the root element.
	Suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   Suite    `xml:"testsuite"`
	}
	// A Suite is a list of cases. Write sets its counts.
	Suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Cases    []Case `xml:"testcase"`
		Out      *Text  `xml:"system-out"`
	}
	// A Case fails if it has Failures, is skipped if it has Skipped, and passes otherwise.
	Case struct {
		Class    string    `xml:"classname,attr"`
		Name     string    `xml:"name,attr"`
		File     string    `xml:"file,attr,omitempty"`
		Line     int       `xml:"line,attr,omitempty"`
		Failures []Failure `xml:"failure"`
		Skipped  *Skipped  `xml:"skipped"`
		Out      *Text     `xml:"system-out"`
	}
	// A Failure has a type, a message of one sentence, and the full text.
	Failure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	// Skipped has the reason why a case was skipped.
	Skipped struct {
		Message string `xml:"message,attr"`
	}
	// Text is the output of a case or of the suite.
	Text struct {
		Text string `xml:",cdata"`
	}
)

// Write counts the cases of s and writes it as an XML document.
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
	s.Name = xmlText(s.Name)
	s.Out.clean()
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Class, c.Name, c.File = xmlText(c.Class), xmlText(c.Name), xmlText(c.File)
		for j := range c.Failures {
			f := &c.Failures[j]
			f.Type, f.Message, f.Text = xmlText(f.Type), xmlText(f.Message), xmlText(f.Text)
		}
		if c.Skipped != nil {
			c.Skipped.Message = xmlText(c.Skipped.Message)
		}
		c.Out.clean()
	}
}

func (t *Text) clean() {
	if t != nil {
		t.Text = xmlText(t.Text)
	}
}

// xmlText removes the characters that XML cannot represent.
func xmlText(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == '\uFFFE' || c == '\uFFFF' {
			return -1
		}
		return c
	}, text)
}
