// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
)

// width is the width of the text of a report, in columns.
const width = 80

// A Painter colours parts of a text. Its fields may be nil.
type Painter struct{ Bad, Good, Bold func(text string) string }

func paint(with func(string) string, text string) string {
	if with == nil {
		return text
	}
	return with(text)
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, p Painter) error {
	var t strings.Builder
	for _, c := range r.Changes {
		c.write(&t, p)
	}
	if len(r.Notes) > 0 {
		t.WriteString(paint(p.Bold, "NOTES") + ", which do not count as changes\n")
		for _, c := range r.Notes {
			t.WriteString(textutil.Wrap("  ", fmt.Sprintf("%s, %s %s: %s, for %s", c.Webhook, c.Operation, c.Resource, c.Cause, textutil.Count(c.Calls, "call")), width))
		}
		t.WriteString("\n")
	}
	r.writeNotCompared(&t, p)
	if r.Compared() > 0 {
		fmt.Fprintf(&t, "%s%11s%12s%12s\n", paint(p.Bold, "LATENCY"), "p50", "p99", "max")
		fmt.Fprintf(&t, "before%s\nnow   %s\n\n", r.Before, r.After)
	}
	verdict := paint(p.Good, r.Verdict())
	if r.Changed > 0 {
		verdict = paint(p.Bad, r.Verdict())
	}
	t.WriteString(verdict + "\n")
	_, err := io.WriteString(w, t.String())
	return err
}

// String returns the columns of the table.
func (l Latency) String() string {
	column := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }
	return fmt.Sprintf("%12s%12s%12s", column(l.P50), column(l.P99), column(l.Max))
}

func (c *Change) write(t *strings.Builder, p Painter) {
	t.WriteString(textutil.Wrap(paint(p.Bad, "CHANGED")+"  ", c.Cause, width))
	line := func(label, text string) {
		for i, one := range strings.Split(text, "\n") {
			if i > 0 {
				label = ""
			}
			t.WriteString(textutil.Wrap(fmt.Sprintf("  %-9s", label), textutil.VisibleLine(one), width))
		}
	}
	line("Webhook:", c.Webhook+", "+c.Operation+" "+c.Resource)
	line("Calls:", fmt.Sprint(c.Calls))
	line("Example:", fmt.Sprintf("%s, %s line %d", c.Example.Object, c.Example.File, c.Example.Line))
	line("Before:", c.Example.Before)
	line("Now:", c.Example.After)
	t.WriteString("\n")
}

// writeNotCompared writes which calls were not compared, and which lines could not be read.
func (r *Report) writeNotCompared(t *strings.Builder, p Painter) {
	var lines []string
	for _, n := range r.NotCompared {
		lines = append(lines, fmt.Sprintf("%s: %s", textutil.Count(n.Calls, "call"), n.Reason))
	}
	if r.Secrets > 0 {
		lines = append(lines, "secrets in the answers to "+textutil.Count(r.Secrets, "call")+": for these, give the key file of the recorder")
	}
	if r.Excluded > 0 {
		lines = append(lines, textutil.Count(r.Excluded, "call")+" of other webhooks")
	}
	for _, f := range r.Files {
		for _, problem := range f.Problems {
			lines = append(lines, f.Name+": "+problem)
		}
	}
	if len(lines) == 0 {
		return
	}
	t.WriteString(paint(p.Bold, "NOT COMPARED") + "\n")
	for _, one := range lines {
		t.WriteString(textutil.Wrap("  ", textutil.VisibleLine(one), width))
	}
	t.WriteString("\n")
}

// Verdict returns the result in one sentence.
func (r *Report) Verdict() string {
	if r.Compared() == 0 {
		return fmt.Sprintf("%s read, and none of them could be compared.", textutil.Count(r.Read, "call"))
	}
	if r.Changed == 0 {
		return fmt.Sprintf("Nothing changes for %s.", textutil.Count(r.Compared(), "call"))
	}
	counts := map[Class]int{}
	for _, c := range r.Changes {
		counts[c.Class] += c.Calls
	}
	var parts []string
	for _, c := range classes {
		if n := counts[c]; n > 0 {
			parts = append(parts, textutil.CountAs(n, nouns[c][0], nouns[c][1]))
		}
	}
	return fmt.Sprintf("%d of %s changed: %s.", r.Changed, textutil.Count(r.Compared(), "call"), textutil.Join(parts, "and"))
}

var nouns = map[Class][2]string{Failure: {"failure", "failures"}, Decision: {"decision", "decisions"}, Denial: {"denial", "denials"}, Patch: {"patch", "patches"}}
