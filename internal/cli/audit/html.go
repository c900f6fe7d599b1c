// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/page"
	"github.com/admitkit/admitkit/internal/textutil"
)

// Page returns the report as an HTML page.
func (r *Report) Page() page.Page {
	p := page.Page{
		Title:   "What webhooks did",
		Status:  page.Passed,
		LawName: "Finding",
		Notes:   append(r.skippedNotes(), r.Notes...),
	}
	p.Notes = append(p.Notes, r.Incomplete...)
	if r.Hidden > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s more of these kinds: --top N shows more.", textutil.Count(r.Hidden, "finding")))
	}
	p.Summary = r.verdict()
	switch {
	case r.Found():
		p.Status = page.Failed
	case len(r.Incomplete) > 0:
		p.Status = page.Undecided
	}
	p.Facts = r.facts()
	if len(r.Mutating) > 0 {
		p.Tables = append(p.Tables, r.mutatingTable())
	}
	if len(r.Validating) > 0 {
		p.Tables = append(p.Tables, r.validatingTable())
	}
	if len(r.Policies) > 0 {
		p.Tables = append(p.Tables, r.policyTable())
	}
	if len(r.AuditAnnotations) > 0 {
		p.Tables = append(p.Tables, r.annotationTable())
	}
	if len(r.Withheld) > 0 {
		p.Tables = append(p.Tables, r.withheldTable())
	}
	for i, f := range r.Findings {
		p.Findings = append(p.Findings, f.page(i))
	}
	return p
}

// verdict summarises the findings in one sentence. For a report with only withheld decisions, it summarises these.
func (r *Report) verdict() string {
	if r.OnlyWithheld {
		return r.withheldVerdict()
	}
	count := map[Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	var parts []string
	for _, s := range []struct {
		severity Severity
		name     string
	}{{Error, "error"}, {Warning, "warning"}} {
		if n := count[s.severity]; n > 0 {
			parts = append(parts, textutil.Count(n, s.name))
		}
	}
	if n := count[Advice]; n > 0 {
		parts = append(parts, fmt.Sprintf("advice (%d)", n))
	}
	switch {
	case len(parts) == 0 && len(r.Incomplete) > 0:
		return "No findings in the part of the logs that could be read."
	case len(parts) == 0:
		return "No findings."
	}
	return "Found: " + strings.Join(parts, ", ") + "."
}

func (r *Report) facts() []page.Fact {
	var names []string
	for _, f := range r.Files {
		names = append(names, f.Name)
	}
	facts := []page.Fact{
		{Name: "Logs", Value: strings.Join(names, ", ")},
		{Name: "Events", Value: strconv.Itoa(r.Events)},
		{Name: "Requests", Value: fmt.Sprintf("%d, %d of them with webhooks", r.Requests, r.WithWebhooks)},
	}
	if r.First != nil {
		facts = append(facts, page.Fact{Name: "Time", Value: stamp(*r.First) + " to " + stamp(*r.Last)})
	}
	for _, of := range []struct {
		name string
		LatencyOf
	}{{"mutating", r.Latency.Mutating}, {"validating", r.Latency.Validating}} {
		if of.Requests > 0 {
			facts = append(facts, page.Fact{Name: "Time in " + of.name + " webhooks", Value: fmt.Sprintf("up to %d ms, in %s that took more than 500 ms", of.LongestMilliseconds, textutil.Count(of.Requests, "request"))})
		}
	}
	return facts
}

func (r *Report) mutatingTable() page.Table {
	t := page.Table{Title: "Mutating webhooks", Text: strings.Join(legend[:], "; ") + "; patches and operations: recorded at level Request only.",
		Columns: columns("Webhook", "Configuration", "Calls", "Again", "Changed", "Patches", "Operations", "Ignored", "Failed", "Denied")}
	for _, m := range r.Mutating[:min(len(r.Mutating), 10*r.Top)] {
		t.Rows = append(t.Rows, []page.Cell{
			{Text: m.Webhook, To: r.firstFinding(Webhook{m.Configuration, m.Webhook})}, {Text: m.Configuration},
			number(m.Calls, page.Plain), number(m.Reinvoked, page.Plain), number(m.Mutated, page.Plain), number(m.Patches, page.Plain), number(m.Operations, page.Plain),
			number(m.FailedOpen, page.Doubtful), number(m.Failed+m.NoDryRun, page.Bad), number(m.Denied, page.Plain),
		})
	}
	return t
}

func (r *Report) validatingTable() page.Table {
	t := page.Table{Title: "Validating webhooks", Text: "Calls that allowed the request are not recorded.",
		Columns: columns("Webhook", "Ignored", "Failed", "Denied")}
	t.Columns[1].Number = true
	for _, v := range r.Validating[:min(len(r.Validating), 10*r.Top)] {
		t.Rows = append(t.Rows, []page.Cell{
			{Text: v.Webhook, To: r.firstFinding(Webhook{Webhook: v.Webhook})},
			number(v.FailedOpen, page.Doubtful), number(v.Failed+v.NoDryRun, page.Bad), number(v.Denied, page.Plain),
		})
	}
	return t
}

func (r *Report) annotationTable() page.Table {
	t := page.Table{Title: "Audit annotations", Columns: columns("Annotation", "Times")}
	t.Columns[1].Number = true
	for _, a := range r.AuditAnnotations[:min(len(r.AuditAnnotations), 10*r.Top)] {
		t.Rows = append(t.Rows, []page.Cell{{Text: a.Name + "/" + a.Key}, number(a.Requests, page.Plain)})
	}
	return t
}

func (r *Report) withheldTable() page.Table {
	t := page.Table{Title: "Withheld decisions", Text: "Hooks in the modes Warn and Shadow would have acted on these requests.",
		Columns: columns("Webhook", "Reason", "Requests")}
	for _, name := range []string{"Mode", "Namespace", "Owner or user", "Example"} {
		t.Columns = append(t.Columns, page.Column{Name: name})
	}
	for _, w := range r.Withheld[:min(len(r.Withheld), 10*r.Top)] {
		t.Rows = append(t.Rows, []page.Cell{
			{Text: w.Webhook}, {Text: "would have " + outcomes[place(w.Outcome)].verb + ": " + w.Reason}, number(w.Requests, page.Plain), {Text: string(w.Mode)},
			{Text: w.where()}, {Text: w.who()}, {Text: stamp(w.Example.Time) + ", audit ID " + w.Example.AuditID + ": " + w.Example.what()},
		})
	}
	return t
}

// columns returns the columns of a table. The third and later columns have numbers.
func columns(names ...string) (all []page.Column) {
	for i, name := range names {
		all = append(all, page.Column{Name: name, Number: i > 1})
	}
	return all
}

func number(n int, tone page.Tone) page.Cell {
	if n == 0 {
		return page.Cell{Text: "–", Tone: page.Faint}
	}
	return page.Cell{Text: strconv.Itoa(n), Tone: tone}
}

func findingID(i int) string { return "finding-" + strconv.Itoa(i+1) }

// firstFinding returns the ID of the first finding about a webhook, or "".
func (r *Report) firstFinding(w Webhook) string {
	if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return slices.Contains(f.Webhooks, w) }); i >= 0 {
		return findingID(i)
	}
	return ""
}

func (f *Finding) page(i int) page.Finding {
	to := page.Finding{
		ID: findingID(i), Law: f.Rule, Title: f.Rule + ": " + f.Title, Summary: f.Summary, Fix: f.Fix, Badge: string(f.Severity),
		Severity: map[Severity]page.Severity{Error: page.Error, Warning: page.Warning, Advice: page.Advice}[f.Severity],
	}
	for _, w := range f.Webhooks {
		to.Webhooks = append(to.Webhooks, w.Webhook)
	}
	for _, o := range f.Objects {
		to.Steps = append(to.Steps, page.Step{Title: o.Object, Outcome: fmt.Sprintf("changed in %d of %s", o.Mutated, textutil.Count(o.Requests, "update")),
			Facts: []page.Fact{{Name: "Users", Value: strings.Join(o.Users, ", ")}}})
	}
	for _, e := range f.Examples {
		to.Steps = append(to.Steps, e.steps(f.Rule)...)
	}
	return to
}

// steps returns the steps of an example: the request and its calls.
func (e *Example) steps(rule string) []page.Step {
	request := page.Step{Title: e.Verb + " " + e.Object, Who: e.User, Outcome: e.answer(rule),
		Facts: []page.Fact{{Name: "Time", Value: stamp(e.Time)}, {Name: "Audit ID", Value: e.AuditID}}}
	if e.DryRun {
		request.Title += ", dry run"
	}
	if e.Milliseconds > 0 {
		request.Facts = append(request.Facts, page.Fact{Name: "In webhooks", Value: fmt.Sprintf("%d ms", e.Milliseconds)})
	}
	steps := []page.Step{request}
	for _, c := range e.Calls {
		step := page.Step{Title: fmt.Sprintf("Round %d", c.Round), Who: c.Webhook, Outcome: e.outcome(rule, c)}
		for _, op := range c.Operations {
			step.Patch = append(step.Patch, page.Operation{Text: op})
		}
		steps = append(steps, step)
	}
	return steps
}
