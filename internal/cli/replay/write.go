// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/page"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/junit"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/replay"
)

// A Report is the result of Run.
type Report struct{ *replay.Report }

// Err returns the error for the exit code: nil if nothing changes, problem.ErrFound if something does, and another error if
// the result is incomplete.
func (r *Report) Err() error {
	switch {
	case r.Changed > 0:
		return problem.ErrFound
	case r.Compared() == 0:
		return problem.New("no call could be compared").Hint("the report lists the reasons")
	case r.damaged():
		return problem.New("the result is incomplete: nothing changes, but parts of the recordings could not be read").Hint("the report lists these parts")
	}
	return nil
}

// damaged reports whether parts of the files could not be read.
func (r *Report) damaged() bool {
	for _, f := range r.Files {
		if len(f.Problems) > 0 {
			return true
		}
	}
	return false
}

// Write writes the report in a form: text, json, junit or html.
func (r *Report) Write(form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "text":
		return r.WriteText(w, replay.Painter{Bad: p.Red, Good: p.Green, Bold: p.Bold})
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r.Report)
	case "junit":
		return r.writeJUnit(w)
	case "html":
		return r.page().Write(w)
	}
	return fmt.Errorf("unknown output format %q", form)
}

// writeJUnit writes a failed test case for each change, and one test case for all other calls.
func (r *Report) writeJUnit(w io.Writer) error {
	suite := junit.Suite{Name: "admitkit replay"}
	for _, c := range r.Changes {
		text := fmt.Sprintf("%s, for example %s in %s line %d\nbefore: %s\nnow: %s\n", textutil.Count(c.Calls, "call"), c.Example.Object, c.Example.File, c.Example.Line, c.Example.Before, c.Example.After)
		suite.Cases = append(suite.Cases, junit.Case{
			Class: c.Webhook, Name: c.Operation + " " + c.Resource + ": " + c.Cause,
			Failures: []junit.Failure{{Type: string(c.Class), Message: c.Cause, Text: text}},
		})
	}
	others := junit.Case{Class: suite.Name, Name: "the other calls give the same answers"}
	if err := r.Err(); err != nil && r.Changed == 0 {
		others.Failures = []junit.Failure{{Type: "incomplete", Message: err.Error(), Text: err.Error()}}
	}
	suite.Cases = append(suite.Cases, others)
	var out strings.Builder
	_ = r.WriteText(&out, replay.Painter{}) // a builder never fails
	suite.Out = &junit.Text{Text: out.String()}
	return junit.Write(w, suite)
}

// page returns the report as an HTML page.
func (r *Report) page() page.Page {
	p := page.Page{
		Title: "Recorded calls against another version", Status: page.Passed, Summary: r.Verdict(), LawName: "Change",
		Facts: []page.Fact{
			{Name: "Calls", Value: fmt.Sprint(r.Read)}, {Name: "Compared", Value: fmt.Sprint(r.Compared())}, {Name: "Changed", Value: fmt.Sprint(r.Changed)},
			{Name: "Latency before, p50 and p99", Value: r.Before.P50.String() + ", " + r.Before.P99.String()},
			{Name: "Latency now, p50 and p99", Value: r.After.P50.String() + ", " + r.After.P99.String()},
		},
	}
	switch {
	case r.Changed > 0:
		p.Status = page.Failed
	case r.Err() != nil:
		p.Status = page.Undecided
	}
	for _, c := range r.Changes {
		p.Findings = append(p.Findings, page.Finding{
			Law: string(c.Class), Webhooks: []string{c.Webhook}, Kind: c.Resource, Severity: page.Error, Badge: "changed", Title: c.Cause,
			Summary: fmt.Sprintf("%s, %s %s", textutil.Count(c.Calls, "call"), c.Operation, c.Resource),
			Steps: []page.Step{{
				Title: "Example", Who: c.Example.Object, Outcome: "differs",
				Facts: []page.Fact{{Name: "Call", Value: fmt.Sprintf("%s line %d", c.Example.File, c.Example.Line)}, {Name: "UID", Value: c.Example.UID}},
				Diff:  &page.Diff{Before: c.Example.Before, After: c.Example.After},
			}},
		})
	}
	for _, n := range r.NotCompared {
		p.Notes = append(p.Notes, fmt.Sprintf("%s not compared: %s.", textutil.CountAs(n.Calls, "call was", "calls were"), n.Reason))
	}
	for _, c := range r.Notes {
		p.Notes = append(p.Notes, fmt.Sprintf("%s of %s: %s. This does not count as a change.", textutil.Count(c.Calls, "call"), c.Webhook, c.Cause))
	}
	for _, f := range r.Files {
		for _, text := range f.Problems {
			p.Notes = append(p.Notes, f.Name+": "+text)
		}
	}
	return p
}
