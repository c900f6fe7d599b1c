// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// WriteText writes the report for a person, in colours if asked for.
func (r *Report) WriteText(w io.Writer, colour bool) error {
	p := printer{colour: colour}
	for _, v := range r.Findings {
		p.finding(v)
	}
	p.laws(r)
	p.printf("%s: %d objects of %s, %d allowed, %d changed; %d checks, %d calls, seed %d\n",
		strings.Join(r.Webhooks, ", "), r.Objects, strings.Join(r.Kinds, ", "), r.Allowed, r.Changed, r.Checks, r.Calls, r.Seed)
	for _, e := range r.Exceptions {
		p.printf("excepted: %s %s: %s\n", e.Path, e.Law, e.Reason)
	}
	if r.Incomplete != "" {
		p.printf("%s\n", p.paint(yellow, "inconclusive: "+r.Incomplete))
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// WriteJSON writes the report for a program.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

type printer struct {
	text   strings.Builder
	colour bool
}

// The colours of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

func (p *printer) paint(colour, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *printer) finding(v *Violation) {
	p.printf("%s %s\n", p.paint(red, string(v.Law)+" "+string(v.Verdict)+":"), p.paint(bold, v.Law.Statement()))
	p.printf("  %s\n", v.Summary)
	p.printf("  Fix: %s\n\n", v.Fix)
	if encoded, err := yaml.Marshal(v.Case.Object); err == nil {
		p.printf("  object (%s):\n%s", v.Case.Operation, indented(string(encoded)))
	}
	for _, e := range v.Case.Edits {
		p.printf("  edit: %s\n", e)
	}
	if v.Case.Rival != "" {
		p.printf("  other webhook: %s\n", v.Case.Rival)
	}
	for i, c := range v.Calls {
		p.printf("  call %d: %s %s %s\n", i+1, c.Webhook, c.Operation, c.Outcome)
		for _, op := range operationsOf(c.Patch) {
			p.printf("    %s\n", op)
		}
	}
	p.printf("\n")
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}

// operationsOf writes the operations of a patch, one a line.
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
			line += " " + string(op.Value)
		}
		lines = append(lines, line)
	}
	return lines
}

// laws writes a line for each kind: the verdicts.
func (p *printer) laws(r *Report) {
	kind := ""
	for _, l := range r.Laws {
		if l.Kind != kind {
			if kind != "" {
				p.printf("\n")
			}
			kind = l.Kind
			p.printf("%s:", kind)
		}
		switch text := " " + string(l.Law); l.Verdict {
		case Holds:
			p.printf("%s", p.paint(green, text+" holds"))
		case NotApplicable:
			p.printf("%s", text+" n/a")
		case Inconclusive:
			p.printf("%s", p.paint(yellow, text+" ?"))
		default:
			p.printf("%s", p.paint(red, text+" BROKEN"))
		}
	}
	if kind != "" {
		p.printf("\n")
	}
}
