// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// WriteText writes the report for a person, with terminal colours if colour is set.
func (r *Report) WriteText(w io.Writer, colour bool) error {
	p := printer{colour: colour, report: r}
	p.findings(r)
	p.whereToBegin(r)
	p.replays(r)
	p.laws(r)
	p.count(r)
	p.writeTriggers(r)
	for _, e := range r.Exceptions {
		p.hanging("excepted: ", exempted(e.Path, e.Law)+": "+e.Reason)
	}
	for _, note := range r.Notes {
		p.hanging(p.paint(yellow, "note: "), r.Text(note))
	}
	p.passes(r)
	if len(r.Incomplete) > 0 {
		p.hanging(p.paint(yellow, "inconclusive: "), r.Texts(r.Incomplete))
	}
	if line := r.AgainLine(); line != "" && (len(r.Incomplete) > 0 || !r.OK()) {
		p.printf("this run again: %s\n", textutil.Visible(line))
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r.worded())
}

type printer struct {
	text   strings.Builder
	colour bool
	report *Report
}

// The colours of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// paint escapes control characters in a text and colours it.
func (p *printer) paint(colour, text string) string {
	text = textutil.Visible(text)
	if !p.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// headings has the heading of a finding for each verdict that a finding can have.
var headings = map[Verdict]string{Fails: "FAILS", Impure: "IMPURE", Advice: "ADVICE"}

func (p *printer) finding(v *Violation) {
	colour := red
	if v.Verdict == Advice {
		colour = yellow
	}
	p.printf("%s  %s\n", p.paint(colour, headings[v.Verdict]), p.paint(bold, v.Law.Title()))
	p.hanging("  Law:    ", v.Law.Statement())
	p.hanging("  Found:  ", v.Summary)
	p.hanging("  Cause:  ", v.Cause)
	p.hanging("  Fix:    ", v.Fix)
	p.object(v)
	for _, e := range v.Case.Edits {
		p.printf("\n  %s\n", editHeading(v.Law))
		p.printf("    %s\n", textutil.Visible(e.String()))
	}
	if v.Case.Rival != "" {
		p.printf("\n  the other webhook %q\n", v.Case.Rival)
	}
	p.calls(v)
	p.difference(v.Difference)
	p.proposed(v)
	if line := p.report.ReplayLine(v); line != "" {
		p.printf("\n  Again:  %s\n", textutil.Visible(line))
	}
}

// findings writes one finding for each cause, the one to fix first. Below it, it lists the other findings with that
// cause.
func (p *printer) findings(r *Report) {
	seen := map[int]bool{}
	for _, v := range r.Findings {
		all := []*Violation{v}
		if v.Group > 0 {
			if seen[v.Group] {
				continue
			}
			seen[v.Group], all = true, r.inGroup(v.Group)
		}
		p.finding(all[0])
		for i, other := range all[1:] {
			if i == 0 {
				p.printf("\n  The same operations also break:\n")
			}
			p.hanging("  - ", other.Law.Title()+": "+textutil.Clip(other.Summary, longestValue))
			if line := r.ReplayLine(other); line != "" {
				p.printf("    Again:  %s\n", textutil.Visible(line))
			}
		}
		p.printf("\n")
	}
}

// proposed writes the lines with which a user declares a finding as intended.
func (p *printer) proposed(v *Violation) {
	for i, e := range v.Proposed {
		if i == 0 {
			p.printf("\n  if this is intended, declare\n")
		}
		p.printf("    %s\n", textutil.Visible(p.report.declaration(e)))
	}
}

// object writes the object of the case, after the objects that the webhook handled before it.
func (p *printer) object(v *Violation) {
	for i, before := range v.Case.Before {
		p.printf("\n  earlier object (%d)\n%s", i+1, asYAML(before))
	}
	p.printf("\n  object\n%s", asYAML(v.Case.Object))
}

func asYAML(doc any) string {
	encoded, err := yaml.JSONToYAML(withoutControls(tree.Encode(doc)))
	if err != nil {
		encoded = withoutControls(tree.Encode(doc)) // JSON is YAML, too
	}
	return "    " + strings.ReplaceAll(strings.TrimSuffix(textutil.Visible(string(encoded)), "\n"), "\n", "\n    ") + "\n"
}

// withoutControls returns JSON with escapes in place of the characters that YAML does not allow, although JSON does.
func withoutControls(raw []byte) []byte {
	var out []byte
	for _, r := range string(raw) {
		if r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func editHeading(law Law) string {
	switch law {
	case L4a, L4b:
		return "an edit by another party between two calls"
	case L9:
		return "a field of a newer API"
	}
	return "a part that exists already"
}

// calls writes the requests, each with its calls and their patch operations.
func (p *printer) calls(v *Violation) {
	request, several := 0, false
	for _, c := range v.Calls {
		several = several || c.Webhook != v.Calls[0].Webhook
	}
	for _, c := range v.Calls {
		if c.Request != request {
			request = c.Request
			p.printf("\n  request %d: %s\n", c.Request, textutil.Visible(c.about()))
		}
		who := ""
		if several {
			who = c.Webhook + ": "
		}
		p.hanging("    ", who+c.Outcome)
		for i, operation := range operationsOf(c.Patch) {
			if slices.Contains(c.Offending, i) {
				p.printf("    %s\n", p.paint(red, "> "+operation))
			} else {
				p.printf("      %s\n", textutil.Visible(operation))
			}
		}
	}
}

// about describes the request that caused the call.
func (c *Exchange) about() string {
	text := c.About
	if text == "" {
		text = "the object"
	}
	text += ", " + string(c.Operation)
	if c.DryRun {
		text += ", dry run"
	}
	if c.ReviewVersion != "v1" {
		text += ", " + c.ReviewVersion
	}
	return text
}

// operationsOf returns the operations of a patch as text, each on one line.
func operationsOf(patch json.RawMessage) (lines []string) {
	var operations []struct {
		Op, Path, From string
		Value          json.RawMessage
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil
	}
	for _, op := range operations {
		line := op.Op + " " + op.Path
		if op.From != "" {
			line += " from " + op.From
		}
		if len(op.Value) > 0 {
			line += " " + textutil.Clip(compact(op.Value), longestValue)
		}
		lines = append(lines, line)
	}
	return lines
}

// compact writes a value on one line.
func compact(raw []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

// longestValue is the number of bytes after which a value is clipped.
const longestValue = 240

// width is the line width of running text.
const width = 80

// hanging writes head and then the text in wrapped lines, indented by the width of head. Only head may contain colours.
func (p *printer) hanging(head, text string) { p.printf("%s", textutil.Wrap(head, text, width)) }
