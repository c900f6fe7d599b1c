// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/internal/junit"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/lint"
)

// Forms returns the output formats of a report.
func Forms() []string { return []string{"text", "json", "junit"} }

// Write writes the report in one of the formats of Forms.
func (r *Report) Write(form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "junit":
		return r.writeJUnit(w)
	}
	t := printer{Painter: p}
	t.report(r)
	_, err := io.WriteString(w, t.text.String())
	return err
}

const width = 80

// A printer writes text of 80 columns.
type printer struct {
	screen.Painter
	text strings.Builder
}

func (t *printer) printf(format string, args ...any) { fmt.Fprintf(&t.text, format, args...) }

// hanging writes head, and after it the text in wrapped lines, which are indented by the width of head.
func (t *printer) hanging(head, text string) {
	t.text.WriteString(textutil.Wrap(head, textutil.VisibleLine(text), width))
}

// list writes one paragraph for each text. Only the first has the head.
func (t *printer) list(head string, texts []string) {
	for _, text := range texts {
		t.hanging(head, text)
		head = strings.Repeat(" ", len(head))
	}
}

func (t *printer) report(r *Report) {
	for _, f := range r.Findings {
		t.finding(&f)
		t.printf("\n")
	}
	t.repair(r.Repair)
	t.traffic(r.Traffic)
	t.gaps(r.NotChecked, r.NotProbed)
	t.summary(r)
}

func (t *printer) finding(f *doctor.Finding) {
	badge := t.paint(f.Severity, strings.ToUpper(string(f.Severity)))
	title := textutil.Wrap(badge+"  ", f.Check+": "+f.Title, width)
	t.printf("%s", strings.Replace(title, f.Check+":", t.Bold(f.Check)+":", 1))
	t.hanging("  About:   ", f.Subject)
	var own, users []string
	for _, c := range f.Callers {
		switch {
		case c.Object != f.Subject:
			users = append(users, c.String())
		case c.Webhook != "":
			own = append(own, c.Webhook+" ("+c.FailurePolicy+")")
		}
	}
	t.list("  Webhook: ", own)
	t.list("  Used by: ", users)
	t.list("  Found:   ", f.Evidence)
	if f.Rejects {
		t.hanging("  Effect:  ", "the API server rejects every request that needs this call")
	}
	t.hanging("  Fix:     ", f.Fix)
	for _, command := range f.Commands {
		t.printf("           %s\n", textutil.VisibleLine(command)) // not wrapped, so that it can be pasted
	}
}

func (t *printer) paint(s lint.Severity, text string) string {
	if s == lint.Error {
		return t.Red(text)
	}
	return t.Yellow(text)
}

// gaps lists what was not checked.
func (t *printer) gaps(all []Gap, unprobed []NotProbed) {
	if len(all)+len(unprobed) == 0 {
		return
	}
	t.printf("%s\n", t.Bold("NOT CHECKED"))
	for _, g := range all {
		t.hanging("  ", g.String())
	}
	for _, n := range unprobed {
		t.hanging("  ", n.Reason+": "+strings.Join(n.Webhooks, ", "))
	}
	t.printf("\n")
}

// String describes a gap in one sentence.
func (g Gap) String() string {
	where := ""
	if len(g.Namespaces) > 0 {
		where = " in namespace " + textutil.Join(g.Namespaces, "and")
	}
	if g.Forbidden {
		return fmt.Sprintf("you lack the permission to %s %s%s", g.Verb, g.Resource, where)
	}
	return fmt.Sprintf("%s %s%s: %s", g.Verb, g.Resource, where, g.Error)
}

// summary writes the number of findings, and what was checked.
func (t *printer) summary(r *Report) {
	counts := t.counts(r)
	of := textutil.Count(r.Webhooks, "webhook") + " in " + textutil.Count(r.Configurations, "configuration")
	if r.Conversions > 0 {
		of += ", " + textutil.Count(r.Conversions, "conversion webhook")
	}
	if r.APIServices > 0 {
		of += ", " + textutil.Count(r.APIServices, "aggregated API service")
	}
	if r.Ignored > 0 {
		of += fmt.Sprintf(" (%d ignored)", r.Ignored)
	}
	if len((&printer{}).counts(r)+": "+of) > width {
		t.printf("%s\n", counts)
		t.hanging("  of ", of)
		return
	}
	t.printf("%s: %s\n", counts, of)
}

// counts returns the number of findings of each severity.
func (t *printer) counts(r *Report) string {
	var counts []string
	for _, s := range lint.Severities() {
		n := 0
		for _, f := range r.Findings {
			if f.Severity == s {
				n++
			}
		}
		switch {
		case n == 0:
		case s == lint.Advice:
			counts = append(counts, textutil.CountAs(n, "piece of advice", "pieces of advice"))
		default:
			counts = append(counts, t.paint(s, textutil.Count(n, string(s))))
		}
	}
	switch {
	case len(counts) > 0:
		return strings.Join(counts, ", ")
	case r.Incomplete():
		return t.Yellow("no findings, but not everything was checked")
	}
	return t.Green("no findings")
}

// writeJUnit writes a test case for each finding, and a skipped one for each gap. A case fails if its finding makes the
// run fail. Other findings are in the output of their cases.
func (r *Report) writeJUnit(w io.Writer) error {
	suite := junit.Suite{Name: "admitkit doctor"}
	for _, f := range r.Findings {
		t := printer{}
		t.finding(&f)
		c := junit.Case{Class: f.Subject, Name: f.Check}
		if f.Severity.AtLeast(r.failOn) {
			c.Failures = []junit.Failure{{Type: f.Check, Message: f.Title, Text: t.text.String()}}
		} else {
			c.Out = &junit.Text{Text: t.text.String()}
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, g := range r.NotChecked {
		suite.Cases = append(suite.Cases, junit.Case{Class: suite.Name, Name: g.Verb + " " + g.Resource, Skipped: &junit.Skipped{Message: g.String()}})
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junit.Case{{Class: suite.Name, Name: "nothing is found"}}
	}
	return junit.Write(w, suite)
}
