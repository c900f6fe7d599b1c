// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The parts of a JUnit report that its readers agree on.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Line    int           `xml:"line,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
		Out     *junitText    `xml:"system-out"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitText struct {
		Text string `xml:",chardata"`
	}
)

// writeJUnit writes a test case for each finding, and one for each configuration without any. A finding fails
// if it counts; a suppressed one is skipped; another is in the output of its case.
func (r *Report) writeJUnit(w io.Writer) error {
	suite := junitSuite{Name: "admitkit lint"}
	about := map[string]bool{}
	for _, f := range r.Findings {
		about[f.Object] = true
		suite.add(r.caseOf(f))
	}
	for _, object := range r.objects {
		if !about[object] {
			suite.add(junitCase{Class: printable(object), Name: "keeps all rules"})
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func (r *Report) caseOf(f Finding) junitCase {
	c := junitCase{Class: printable(f.Object), Name: printable(strings.TrimSpace(f.Rule + " " + f.about())), File: printable(f.File), Line: f.Line}
	if f.Object == "" {
		c.Class = printable(f.File)
	}
	text := printable(fmt.Sprintf("%s: %s %s\n%s\nfix: %s\n%s\n", f.where(), f.Severity, f.Rule, f.Message, f.Fix, f.Link))
	switch {
	case f.Suppressed != "":
		c.Skipped = &junitSkipped{Message: printable(f.Suppressed)}
	case r.counts(f):
		c.Failure = &junitFailure{Type: f.Rule, Message: printable(f.Message), Text: text}
	default:
		c.Out = &junitText{text}
	}
	return c
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
