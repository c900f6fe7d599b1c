// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/xml"
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
		Out      *junitOut   `xml:"system-out"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		Failures []junitFailure `xml:"failure"`
		Skipped  *junitSkipped  `xml:"skipped"`
		Out      *junitOut      `xml:"system-out"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitOut struct {
		Text string `xml:",cdata"`
	}
)

// printable leaves out what XML has no way to say.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == '\uFFFE' || c == '\uFFFF' {
			return -1
		}
		return c
	}, text)
}

// WriteJUnit writes the report for CI systems: a test case for each kind and law. A law that is
// inconclusive or does not apply counts as skipped; advice is in the output of its case. A run that is
// incomplete has a test case for that, which fails.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: strings.Join(r.Webhooks, ", "), Tests: len(r.Laws)}
	for _, l := range r.Laws {
		c := r.junitCase(l)
		suite.Failures += min(1, len(c.Failures))
		if c.Skipped != nil {
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	p := printer{}
	p.count(r)
	if r.Incomplete != "" { // or else a run that says nothing would look like one that found nothing
		suite.Tests, suite.Failures = suite.Tests+1, suite.Failures+1
		failure := junitFailure{Type: string(Inconclusive), Message: printable(r.Incomplete), Text: printable(r.Incomplete)}
		suite.Cases = append(suite.Cases, junitCase{Class: suite.Name, Name: "enough could be tried", Failures: []junitFailure{failure}})
		p.printf("inconclusive: %s\n", r.Incomplete)
	}
	suite.Out = &junitOut{printable(p.text.String())}
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

func (r *Report) junitCase(l LawResult) junitCase {
	c := junitCase{Class: strings.Join(r.Webhooks, ", ") + " " + l.Kind, Name: string(l.Law) + " " + l.Law.Statement()}
	switch l.Verdict {
	case Inconclusive:
		c.Skipped = &junitSkipped{printable("inconclusive: " + l.Reason)}
	case NotApplicable:
		c.Skipped = &junitSkipped{printable("does not apply: " + l.Reason)}
	}
	for _, v := range r.Findings {
		if v.Law != l.Law || v.Kind != l.Kind {
			continue
		}
		p := printer{}
		p.finding(v)
		if v.Verdict == Advice {
			c.Out = &junitOut{printable(p.text.String())}
			continue
		}
		c.Failures = append(c.Failures, junitFailure{Type: string(v.Verdict), Message: printable(v.Summary), Text: printable(p.text.String())})
	}
	return c
}
