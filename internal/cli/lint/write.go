// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/visible"
	"github.com/admitkit/admitkit/pkg/lint"
)

// Forms are those in which a report can be written.
func Forms() []string { return []string{"text", "json", "junit", "sarif"} }

// Write writes the report.
func (r *Report) Write(form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "json":
		return writeJSON(w, r)
	case "junit":
		return r.writeJUnit(w)
	case "sarif":
		return r.writeSARIF(w)
	}
	return r.writeText(w, p)
}

func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

const width = 80

// writeText writes a paragraph for each finding; suppressed ones are counted only.
func (r *Report) writeText(w io.Writer, p screen.Painter) error {
	var text strings.Builder
	titles := map[string]string{}
	for _, rule := range lint.Rules() {
		titles[rule.ID] = rule.Title
	}
	for _, f := range r.Findings {
		if f.Suppressed != "" {
			continue
		}
		fmt.Fprintf(&text, "%s %s %s\n", p.Bold(f.where()+":"), paint(p, f.Severity), p.Bold(f.Rule+" "+titles[f.Rule]))
		if about := f.about(); about != "" {
			fmt.Fprintf(&text, "    %s\n", p.Faint(about))
		}
		hanging(&text, "    ", f.Message)
		hanging(&text, "    fix: ", f.Fix)
		text.WriteString("\n")
	}
	text.WriteString(r.summary(p))
	_, err := io.WriteString(w, text.String())
	return err
}

// where is the place: hooks.yaml:12, or the object in a cluster.
func (f *Finding) where() string {
	switch f.File {
	case "":
		return visible.Line(f.Object)
	case "-":
		return fmt.Sprintf("standard input:%d", f.Line)
	}
	return fmt.Sprintf("%s:%d", visible.Line(f.File), f.Line)
}

// about names the webhook and the field.
func (f *Finding) about() string {
	if f.Webhook == "" {
		return visible.Line(strings.TrimSpace(f.Path))
	}
	return visible.Line(strings.TrimSpace(f.Webhook + "  " + f.Path))
}

func paint(p screen.Painter, s lint.Severity) string {
	if s == lint.Error {
		return p.Red(string(s))
	}
	if s == lint.Warning {
		return p.Yellow(string(s))
	}
	return string(s)
}

func (r *Report) summary(p screen.Painter) string {
	of := "in " + plural(r.Configurations, "configuration", "configurations") + " with " + plural(r.Webhooks, "webhook", "webhooks")
	if r.Suppressed > 0 {
		of += fmt.Sprintf(" (%d suppressed)", r.Suppressed)
	}
	if r.Errors+r.Warnings+r.Advice == 0 {
		return p.Green("nothing found") + " " + of + "\n"
	}
	counts := []string{}
	if r.Errors > 0 {
		counts = append(counts, p.Red(plural(r.Errors, "error", "errors")))
	}
	if r.Warnings > 0 {
		counts = append(counts, p.Yellow(plural(r.Warnings, "warning", "warnings")))
	}
	if r.Advice > 0 {
		counts = append(counts, plural(r.Advice, "piece of advice", "pieces of advice"))
	}
	return strings.Join(counts, ", ") + " " + of + "\n" +
		p.Faint(fmt.Sprintf("why, and where to read on: admitkit lint --explain %s", r.worst())) + "\n"
}

// worst is the rule to read of first.
func (r *Report) worst() string {
	for _, s := range lint.Severities() {
		for _, f := range r.Findings {
			if f.Severity == s && f.Suppressed == "" {
				return f.Rule
			}
		}
	}
	return ""
}

// hanging wraps a text, its lines indented as far as what leads it.
func hanging(to *strings.Builder, lead, text string) {
	column := utf8.RuneCountInString(lead)
	indent := strings.Repeat(" ", column)
	to.WriteString(lead)
	at := column
	for i, word := range strings.Fields(visible.Text(text)) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			to.WriteString("\n" + indent)
			at = column
		default:
			to.WriteString(" ")
			at++
		}
		to.WriteString(word)
		at += n
	}
	to.WriteString("\n")
}

// notForRules refuses forms of findings.
func notForRules(form string) error {
	return problem.New("-o %s is for findings: rules are written as text and json", form)
}

// WriteRules lists all rules.
func WriteRules(form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "json":
		return writeJSON(w, lint.Rules())
	case "junit", "sarif":
		return notForRules(form)
	}
	var text strings.Builder
	for _, r := range lint.Rules() {
		pad := strings.Repeat(" ", len("warning")-len(r.Severity))
		fmt.Fprintf(&text, "%s  %s%s  %s\n", p.Bold(r.ID), paint(p, r.Severity), pad, r.Title)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteRule says all about one.
func WriteRule(r *lint.Rule, form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "json":
		return writeJSON(w, r)
	case "junit", "sarif":
		return notForRules(form)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s  %s\n\n", p.Bold(r.ID), paint(p, r.Severity), p.Bold(r.Title))
	hanging(&text, "  Why:   ", r.Why)
	hanging(&text, "  Fix:   ", r.Fix)
	fmt.Fprintf(&text, "  Read:  %s\n", r.Link)
	hanging(&text, "  If it is meant to be:  ", fmt.Sprintf(`annotation lint.admitkit.dev/ignore: "%s=the reason"`, r.ID))
	_, err := io.WriteString(w, text.String())
	return err
}
