// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/admitkit/admitkit/internal/junit"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// WriteJUnit writes the report in JUnit format for CI systems. Each finding is a test case, which passes if its
// severity is Advice and otherwise fails. So is each withheld decision if the report has nothing else. A log that could not be read is a failed test case.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junit.Suite{Name: "admitkit audit"}
	for _, f := range r.Findings {
		suite.Cases = append(suite.Cases, f.junitCase())
	}
	if r.OnlyWithheld {
		for _, w := range r.Withheld {
			suite.Cases = append(suite.Cases, w.junitCase())
		}
	}
	for _, text := range r.Incomplete {
		failure := junit.Failure{Type: "incomplete", Message: text, Text: text}
		suite.Cases = append(suite.Cases, junit.Case{Class: suite.Name, Name: "the logs can be read", Failures: []junit.Failure{failure}})
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junit.Case{{Class: suite.Name, Name: "nothing is found"}}
	}
	t := printer{}
	t.head(r)
	suite.Out = &junit.Text{Text: t.text.String()}
	return junit.Write(w, suite)
}

func (f *Finding) junitCase() junit.Case {
	var names []string
	for _, w := range f.Webhooks {
		names = append(names, strings.TrimPrefix(w.Configuration+"/"+w.Webhook, "/"))
	}
	c := junit.Case{Class: strings.Join(names, ", "), Name: strings.TrimSpace(f.Rule + " " + f.Detail)}
	t := printer{}
	t.finding(f)
	if f.Severity == Advice {
		c.Out = &junit.Text{Text: t.text.String()}
	} else {
		c.Failures = []junit.Failure{{Type: f.Rule, Message: f.Summary, Text: t.text.String()}}
	}
	return c
}

// junitCase returns a test case, which fails if requests would have been denied or would have failed.
func (w *Withheld) junitCase() junit.Case {
	c := junit.Case{Class: w.Webhook, Name: fmt.Sprintf("%s %s in %s: %s", w.where(), w.who(), w.Mode, w.Reason)}
	text := fmt.Sprintf("would have %s %s: %s\n%s  audit ID %s\n%s\n", outcomes[place(w.Outcome)].verb, textutil.Count(w.Requests, "request"), w.ExampleReason,
		stamp(w.Example.Time), w.Example.AuditID, w.Example.what())
	if w.Outcome == webhook.Mutated {
		c.Out = &junit.Text{Text: text}
	} else {
		c.Failures = []junit.Failure{{Type: string(w.Outcome), Message: w.Reason, Text: text}}
	}
	return c
}
