// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/textutil"
)

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report as text of 80 columns.
func (r *Report) WriteText(w io.Writer, p screen.Painter) error {
	t := printer{Painter: p}
	t.head(r)
	t.mutating(r)
	t.validating(r)
	t.legend(r)
	t.policies(r)
	t.annotations(r)
	t.withheld(r)
	t.latency(r)
	for _, f := range r.Findings {
		t.finding(&f)
	}
	if r.Hidden > 0 {
		t.printf("\n")
		t.hanging("", fmt.Sprintf("%s more of these kinds: --top N shows more.", textutil.Count(r.Hidden, "finding")))
	}
	t.printf("\n%s\n", r.verdict())
	for _, n := range append(r.skippedNotes(), r.Notes...) {
		t.printf("\n")
		t.hanging(t.Yellow("note: "), n)
	}
	for _, n := range r.Incomplete {
		t.printf("\n")
		t.hanging(t.Red("incomplete: "), n)
	}
	_, err := io.WriteString(w, t.text.String())
	return err
}

const width = 80

type printer struct {
	screen.Painter
	text strings.Builder
}

func (t *printer) printf(format string, args ...any) { fmt.Fprintf(&t.text, format, args...) }

func (t *printer) head(r *Report) {
	t.printf("%s, %s, %d with webhooks\n", textutil.Count(r.Events, "event"), textutil.Count(r.Requests, "request"), r.WithWebhooks)
	if r.First != nil {
		t.printf("%s to %s\n", stamp(*r.First), stamp(*r.Last))
	}
	if r.Duplicates > 0 {
		t.printf("%s read twice and counted once\n", textutil.Count(r.Duplicates, "event"))
	}
	if r.OutsideTime > 0 {
		t.printf("%s outside of the selected time\n", textutil.Count(r.OutsideTime, "request"))
	}
}

// These are the widths of the name column in tables with six numbers, three numbers and one number in each row.
const (
	nameWidth = 32
	wideName  = 56
	// policyWidth is the width for two numbers.
	policyWidth = 64
	widest      = 72
)

// row writes a name and its numbers. A long name has its own line. A dash stands for 0.
func (t *printer) row(room int, name string, numbers ...int) {
	name = onOneLine(name)
	if utf8.RuneCountInString(name) > room {
		t.printf("%s\n", name)
		name = ""
	}
	t.printf("%s%s", name, strings.Repeat(" ", room-utf8.RuneCountInString(name)))
	for _, n := range numbers {
		if n == 0 {
			t.printf(" %s", t.Faint("      -"))
		} else {
			t.printf(" %7d", n)
		}
	}
	t.printf("\n")
}

func (t *printer) mutating(r *Report) {
	if len(r.Mutating) == 0 {
		return
	}
	t.printf("\n%s\n", t.Bold(fmt.Sprintf("%-*s %7s %7s %7s %7s %7s %7s", nameWidth, "MUTATING", "calls", "again", "changed", "ignored", "failed", "denied")))
	for _, m := range r.Mutating[:min(len(r.Mutating), r.Top)] {
		t.row(nameWidth, m.Webhook, m.Calls, m.Reinvoked, m.Mutated, m.FailedOpen, m.Failed+m.NoDryRun, m.Denied)
		about := "of " + m.Configuration
		if m.Patches > 0 {
			about += fmt.Sprintf("; operations per patch: %.3g", float64(m.Operations)/float64(m.Patches))
		}
		if m.SlowestMilliseconds > 0 {
			about += fmt.Sprintf("; slowest: %d ms", m.SlowestMilliseconds)
		}
		t.printf("%s\n", t.Faint("  "+onOneLine(about)))
	}
	t.more(len(r.Mutating)-r.Top, "webhook")
}

func (t *printer) validating(r *Report) {
	if len(r.Validating) == 0 {
		return
	}
	t.printf("\n%s\n", t.Bold(fmt.Sprintf("%-*s %7s %7s %7s", wideName, "VALIDATING, without allowed requests", "ignored", "failed", "denied")))
	for _, v := range r.Validating[:min(len(r.Validating), r.Top)] {
		t.row(wideName, v.Webhook, v.FailedOpen, v.Failed+v.NoDryRun, v.Denied)
	}
	t.more(len(r.Validating)-r.Top, "webhook")
}

// legend explains the columns of the tables.
func (t *printer) legend(r *Report) {
	if len(r.Mutating)+len(r.Validating) > 0 {
		t.printf("\n%s\n", t.Faint(strings.Join(legend[:], "\n")))
	}
}

var legend = [...]string{
	"again: calls in round 1; changed: calls that changed the object",
	"ignored: failed calls that were ignored because of failurePolicy Ignore",
	"failed: requests rejected because the call failed or dry runs are unsupported",
	"denied: requests that the webhook denied",
}

func (t *printer) annotations(r *Report) {
	if len(r.AuditAnnotations) == 0 {
		return
	}
	t.printf("\n%s\n", t.Bold(fmt.Sprintf("%-*s %7s", widest, "AUDIT ANNOTATIONS", "times")))
	for _, a := range r.AuditAnnotations[:min(len(r.AuditAnnotations), r.Top)] {
		t.row(widest, a.Name+"/"+a.Key, a.Requests)
	}
	t.more(len(r.AuditAnnotations)-r.Top, "annotation")
}

// withheld writes the withheld decisions. Rows of the same webhook and reason have one heading.
func (t *printer) withheld(r *Report) {
	if len(r.Withheld) == 0 {
		return
	}
	t.printf("\n%s\n", t.Bold(fmt.Sprintf("%-*s %s", widest-1, "WITHHELD, by hooks in the modes Warn and Shadow", "requests")))
	lastHeading, lastReason := "", ""
	for _, w := range r.Withheld[:min(len(r.Withheld), r.Top)] {
		heading := fmt.Sprintf("%s in %s would have %s:", w.Webhook, w.Mode, outcomes[place(w.Outcome)].verb)
		if heading != lastHeading {
			t.hanging("", heading)
			lastHeading, lastReason = heading, ""
		}
		if w.Reason != lastReason {
			t.hanging("  ", w.Reason)
			lastReason = w.Reason
		}
		t.row(widest, "    "+w.where()+"  "+w.who(), w.Requests)
		t.printf("      %s  %s\n", stamp(w.Example.Time), t.Faint("audit ID "+onOneLine(w.Example.AuditID)))
		t.hanging("      ", w.Example.what())
		if w.ExampleReason != w.Reason {
			t.hanging("      ", w.ExampleReason)
		}
	}
	t.more(len(r.Withheld)-r.Top, "row")
}

func (t *printer) more(n int, what string) {
	if n > 0 {
		t.printf("%s\n", t.Faint(fmt.Sprintf("and %s: --top N", textutil.Count(n, "more "+what))))
	}
}

func (t *printer) latency(r *Report) {
	m, v := r.Latency.Mutating, r.Latency.Validating
	if m.Requests+v.Requests == 0 {
		return
	}
	t.printf("\n%s\n", t.Bold("TIME IN WEBHOOKS, of requests that took more than 500 ms"))
	for _, of := range []struct {
		name string
		LatencyOf
	}{{"mutating", m}, {"validating", v}} {
		if of.Requests > 0 {
			t.printf("%-10s  %s, up to %d ms\n", of.name, textutil.Count(of.Requests, "request"), of.LongestMilliseconds)
		}
	}
}

func (t *printer) finding(f *Finding) {
	badge := strings.ToUpper(string(f.Severity))
	if f.Severity == Error {
		badge = t.Red(badge)
	} else {
		badge = t.Yellow(badge)
	}
	title := textutil.Wrap(badge+"  ", f.Rule+": "+f.Title, width)
	t.printf("\n%s", strings.Replace(title, f.Rule+":", t.Bold(f.Rule)+":", 1))
	t.hanging("  Found:  ", f.Summary)
	t.hanging("  Fix:    ", f.Fix)
	for _, o := range f.Objects {
		t.hanging("  Object: ", fmt.Sprintf("%s: changed in %d of %d updates by %s", o.Object, o.Mutated, o.Requests, strings.Join(o.Users, ", ")))
	}
	for i, e := range f.Examples {
		t.example(f.Rule, &e, i == 0)
	}
}

// example writes an example of a finding: the request and, if calls is true, the calls in it.
func (t *printer) example(rule string, e *Example, calls bool) {
	t.printf("  %s  %s\n", stamp(e.Time), t.Faint("audit ID "+onOneLine(e.AuditID)))
	t.hanging("    ", e.what())
	if !calls {
		return
	}
	if answer := e.answer(rule); answer != "" {
		t.hanging("    ", answer)
	}
	for _, c := range e.Calls {
		t.hanging("    ", fmt.Sprintf("round %d: %s %s", c.Round, c.Webhook, e.outcome(rule, c)))
		for _, op := range c.Operations {
			t.hanging("      ", op)
		}
	}
}

// what describes the request of an example.
func (e *Example) what() string {
	what := e.Verb + " " + e.Object + " by " + e.User
	if e.DryRun {
		what += ", dry run"
	}
	if e.Milliseconds > 0 {
		what += fmt.Sprintf(", %d ms in webhooks", e.Milliseconds)
	}
	return what
}

// outcome describes the result of a call in an example of a finding. If the call ended the request, the message of the
// API server shows whether the webhook denied the request or failed.
func (e *Example) outcome(rule string, c ExampleCall) string {
	switch {
	case c.Mutated && (rule == noOp || rule == noOpReinvokes):
		return "counts as having changed the object"
	case c.FailedOpen:
		return "failed and was ignored"
	case c.Mutated:
		return "changed the object"
	case len(c.Operations) > 0:
		return "sent a patch that changed nothing"
	}
	if e.Code >= http.StatusBadRequest && strings.Contains(e.Message, strconv.Quote(c.Webhook)) {
		switch {
		case strings.Contains(e.Message, "failed calling webhook"), strings.Contains(e.Message, "failed to call webhook"):
			return "failed"
		case strings.Contains(e.Message, "denied the request"):
			return "denied the request"
		}
	}
	return "did not change the object"
}

// skippedNotes returns notes on skipped lines.
func (r *Report) skippedNotes() (notes []string) {
	for _, f := range r.Files {
		if n := f.Corrupt + f.TooLong; n > 0 {
			text := fmt.Sprintf("%s skipped in %s:", were(textutil.Count(n, "line"), n), f.Name)
			for i, s := range f.Skipped {
				text += fmt.Sprintf("%s line %d is %s", strings.Repeat(",", min(i, 1)), s.Line, s.Reason)
			}
			if n > len(f.Skipped) {
				text += fmt.Sprintf(", and %d more", n-len(f.Skipped))
			}
			notes = append(notes, text)
		}
		if f.HalfWritten {
			notes = append(notes, fmt.Sprintf("the last line of %s is incomplete and was skipped", f.Name))
		}
	}
	return notes
}

// hanging writes head, and after it the text in wrapped lines, which are indented by the width of head.
func (t *printer) hanging(head, text string) {
	t.text.WriteString(textutil.Wrap(head, onOneLine(text), width))
}
