// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"io"
	"strings"

	"github.com/admitkit/admitkit/internal/junit"
)

// WriteJUnit writes the report in JUnit's format, with a test case for each kind and law. A law that is inconclusive or
// does not apply is skipped. Advice is in the output of its test case. An incomplete run has one more test case, which
// fails.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junit.Suite{Name: strings.Join(r.Webhooks, ", ")}
	for _, l := range r.Laws {
		suite.Cases = append(suite.Cases, r.junitCase(l))
	}
	p := printer{report: r}
	p.count(r)
	p.writeTriggers(r)
	if incomplete := r.Texts(r.Incomplete); incomplete != "" { // an incomplete run must not look successful
		failure := junit.Failure{Type: string(Inconclusive), Message: incomplete, Text: incomplete}
		suite.Cases = append(suite.Cases, junit.Case{Class: suite.Name, Name: "enough could be tried", Failures: []junit.Failure{failure}})
		p.printf("inconclusive: %s\n", incomplete)
	}
	suite.Out = &junit.Text{Text: p.text.String()}
	return junit.Write(w, suite)
}

func (r *Report) junitCase(l LawResult) junit.Case {
	c := junit.Case{Class: strings.Join(r.Webhooks, ", ") + " " + l.Kind, Name: l.Law.Title() + ": " + l.Law.Statement()}
	switch l.Verdict {
	case Inconclusive:
		c.Skipped = &junit.Skipped{Message: "inconclusive: " + r.reasonText(l.Reason)}
	case NotApplicable:
		c.Skipped = &junit.Skipped{Message: "does not apply: " + r.reasonText(l.Reason)}
	}
	for _, v := range r.Findings {
		if v.Law != l.Law || v.Kind != l.Kind {
			continue
		}
		p := printer{report: r}
		p.finding(v)
		if v.Verdict == Advice {
			c.Out = &junit.Text{Text: p.text.String()}
			continue
		}
		c.Failures = append(c.Failures, junit.Failure{Type: string(v.Verdict), Message: v.Summary, Text: p.text.String()})
	}
	return c
}
