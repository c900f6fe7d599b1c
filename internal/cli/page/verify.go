// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/patch"
)

// FromVerify returns the page for a report of "admitkit verify".
func FromVerify(r *idempotence.Report) Page {
	p := Page{
		Title: title(r.Webhooks),
		Facts: []Fact{
			{"Webhooks", strings.Join(r.Webhooks, ", ")},
			{"Kinds", strings.Join(r.Kinds, ", ")},
			{"Objects", fmt.Sprintf("%d, of which %d allowed and %d changed", r.Objects, r.Allowed, r.Changed)},
			{"Checks", strconv.Itoa(r.Checks)},
			{"Calls", strconv.Itoa(r.Calls)},
			{"Seed", strconv.FormatInt(r.Seed, 10)},
		},
	}
	for _, t := range r.Triggers {
		if len(t.Conditions) > 0 {
			p.Notes = append(p.Notes, "trigger: "+t.String())
		}
	}
	for _, note := range r.Notes {
		p.Notes = append(p.Notes, r.Text(note))
	}
	p.Status, p.Summary = lawsStatus(r)
	if line := r.AgainLine(); line != "" {
		p.Facts = append(p.Facts, Fact{"Repeat this run", line})
	}
	for i, v := range r.Findings {
		p.Findings = append(p.Findings, lawFinding(r, i, v))
	}
	if len(r.Laws) > 0 {
		p.Tables = append(p.Tables, lawTable(r))
	}
	if len(r.Exceptions) > 0 {
		p.Tables = append(p.Tables, exceptionTable(r.Exceptions))
	}
	if len(r.Replayed) > 0 {
		p.Tables = append(p.Tables, replayTable(r))
	}
	return p
}

func title(webhooks []string) string {
	if len(webhooks) == 1 {
		return "Is " + webhooks[0] + " safe to call again?"
	}
	return fmt.Sprintf("Are these %d webhooks safe to call again?", len(webhooks))
}

func lawsStatus(r *idempotence.Report) (Status, string) {
	var failed []string
	advice := 0
	for _, v := range r.Findings {
		switch law := v.Law.Title(); {
		case v.Verdict == idempotence.Advice:
			advice++
		case !slices.Contains(failed, law):
			failed = append(failed, law)
		}
	}
	more := ""
	if advice > 0 {
		more = fmt.Sprintf(" There is advice (%d).", advice)
	}
	if incomplete := r.Texts(r.Incomplete); incomplete != "" {
		more = " The run is incomplete: " + incomplete + "." + more
	}
	switch {
	case len(failed) > 0:
		return Failed, "Failed: " + strings.Join(failed, ", ") + "." + more
	case len(r.Incomplete) > 0:
		return Undecided, strings.TrimSpace(more)
	}
	return Passed, "No case was found that breaks a law." + more
}

func findingID(i int) string { return "finding-" + strconv.Itoa(i+1) }

func lawFinding(r *idempotence.Report, i int, v *idempotence.Violation) Finding {
	f := Finding{
		ID:      findingID(i),
		Law:     v.Law.Title(),
		Kind:    v.Kind,
		Badge:   lawBadges[v.Verdict],
		Title:   v.Law.Title() + ": " + v.Law.Statement(),
		Summary: v.Summary,
		Cause:   v.Cause,
		Fix:     v.Fix,
		Again:   r.ReplayLine(v),
	}
	if v.Verdict == idempotence.Advice {
		f.Severity = Advice
	}
	for _, c := range v.Calls {
		if !slices.Contains(f.Webhooks, c.Webhook) {
			f.Webhooks = append(f.Webhooks, c.Webhook)
		}
	}
	if len(f.Webhooks) == 0 {
		f.Webhooks = r.Webhooks
	}
	f.Steps = append(caseSteps(v), callSteps(v)...)
	if d := v.Difference; d != nil {
		f.Changes = &Changes{From: d.From, To: d.To}
		for _, c := range d.Changes {
			change := Change{Path: c.Path, Old: oneLine(c.Old), New: oneLine(c.New)}
			if c.Kind == "moved" {
				change.Path += " (order)"
			}
			f.Changes.List = append(f.Changes.List, change)
		}
	}
	return f
}

var lawBadges = map[idempotence.Verdict]string{
	idempotence.Fails:  "fails",
	idempotence.Impure: "impure",
	idempotence.Advice: "advice",
}

// caseSteps returns the steps before the first call: the objects and edits of the case.
func caseSteps(v *idempotence.Violation) (steps []Step) {
	for i, before := range v.Case.Before {
		steps = append(steps, Step{Title: fmt.Sprintf("Earlier object (%d)", i+1), Text: toYAML(before)})
	}
	if v.Case.Old != nil {
		steps = append(steps, Step{Title: "The stored object", Text: toYAML(v.Case.Old)})
	}
	steps = append(steps, Step{Title: "The smallest failing object", Text: toYAML(v.Case.Object)})
	for _, e := range v.Case.Edits {
		steps = append(steps, Step{Title: "Edit by another party", Outcome: e.String()})
	}
	if v.Case.Rival != "" {
		steps = append(steps, Step{Title: "The other webhook", Who: v.Case.Rival})
	}
	return steps
}

// callSteps returns one step for each call, with its request and outcome.
func callSteps(v *idempotence.Violation) (steps []Step) {
	for _, c := range v.Calls {
		about := c.About
		if about == "" {
			about = "the object"
		}
		s := Step{Title: fmt.Sprintf("Request %d: %s, %s", c.Request, about, c.Operation), Who: c.Webhook, Outcome: c.Outcome}
		if c.DryRun {
			s.Title += ", dry run"
		}
		if c.ReviewVersion != "v1" {
			s.Title += ", " + c.ReviewVersion
		}
		s.Patch, s.Diff = patched(&c)
		steps = append(steps, s)
	}
	return steps
}

// patched returns the operations of a call's patch, and the object before and after it.
func patched(c *idempotence.Exchange) ([]Operation, *Diff) {
	parsed, err := patch.Parse(c.Patch)
	if err != nil || len(parsed) == 0 {
		return nil, nil
	}
	var operations []Operation
	for i, op := range parsed {
		text := string(op.Op) + " " + string(op.Path)
		if op.From != "" {
			text += " from " + string(op.From)
		}
		if len(op.Value) > 0 {
			text += " " + oneLine(op.Value)
		}
		operations = append(operations, Operation{Text: text, Offending: slices.Contains(c.Offending, i)})
	}
	after, err := patch.Apply(c.Object, parsed)
	if err != nil {
		return operations, nil
	}
	return operations, &Diff{Before: toYAML(c.Object), After: toYAML(json.RawMessage(after))}
}

func lawTable(r *idempotence.Report) Table {
	t := Table{
		Title:   "Laws",
		Columns: []Column{{Name: "Kind"}, {Name: "Law"}, {Name: "Verdict"}, {Name: "Cases", Number: true}, {Name: "Statement"}, {Name: "Reason"}},
	}
	for _, l := range r.Laws {
		to := ""
		if i := slices.IndexFunc(r.Findings, func(v *idempotence.Violation) bool { return v.Law == l.Law && v.Kind == l.Kind }); i >= 0 {
			to = findingID(i)
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: l.Kind}, {Text: l.Law.Title()}, {Text: string(l.Verdict), To: to, Tone: lawTones[l.Verdict]},
			{Text: strconv.Itoa(l.Cases)}, {Text: l.Law.Statement()}, {Text: reasonText(r, l.Reason)},
		})
	}
	return t
}

var lawTones = map[idempotence.Verdict]Tone{
	idempotence.Passes:        Good,
	idempotence.Fails:         Bad,
	idempotence.Impure:        Bad,
	idempotence.Inconclusive:  Doubtful,
	idempotence.Advice:        Doubtful,
	idempotence.NotApplicable: Faint,
}

func exceptionTable(list []idempotence.Exception) Table {
	t := Table{Title: "Exceptions", Text: "Changes that are declared as intended.", Columns: []Column{{Name: "Path"}, {Name: "Law"}, {Name: "Reason"}}}
	for _, e := range list {
		law := "all"
		if e.Law != "" {
			law = e.Law.Title()
		}
		t.Rows = append(t.Rows, []Cell{{Text: e.Path}, {Text: law}, {Text: e.Reason}})
	}
	return t
}

func replayTable(r *idempotence.Report) Table {
	t := Table{Title: "Stored cases", Columns: []Column{{Name: "File"}, {Name: "Law"}, {Name: "Verdict"}, {Name: "Reason"}}}
	for _, c := range r.Replayed {
		t.Rows = append(t.Rows, []Cell{{Text: c.File}, {Text: c.Law.Title()}, {Text: string(c.Verdict), Tone: lawTones[c.Verdict]}, {Text: reasonText(r, c.Reason)}})
	}
	return t
}

// reasonText returns the text of a reason, or nothing for nil.
func reasonText(r *idempotence.Report, reason *idempotence.Reason) string {
	if reason == nil {
		return ""
	}
	return r.Text(*reason)
}

// toYAML encodes a value or JSON as YAML. It returns invalid JSON unchanged.
func toYAML(doc any) string {
	var encoded []byte
	var err error
	if raw, ok := doc.(json.RawMessage); ok {
		encoded, err = yaml.JSONToYAML(raw)
		if err != nil {
			return string(raw)
		}
	} else {
		encoded, err = yaml.Marshal(doc)
	}
	if err != nil {
		return ""
	}
	return string(encoded)
}

// oneLine encodes JSON on one line.
func oneLine(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
