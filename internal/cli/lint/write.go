// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/lint"
)

// Forms returns the output formats of a report.
func Forms() []string { return []string{"text", "json", "junit", "sarif"} }

// Write writes the report in one of the formats of Forms.
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

// writeText writes a paragraph for each finding and a summary. Suppressed findings are only counted.
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
		text.WriteString(textutil.Wrap("    ", f.Message, width))
		text.WriteString(textutil.Wrap("    fix: ", f.Fix, width))
		text.WriteString("\n")
	}
	text.WriteString(r.summary(p))
	_, err := io.WriteString(w, text.String())
	return err
}

// where returns the location of a finding: a file and line such as hooks.yaml:12, or the object in a cluster.
func (f *Finding) where() string {
	switch f.File {
	case "":
		return textutil.VisibleLine(f.Object)
	case "-":
		return fmt.Sprintf("standard input:%d", f.Line)
	}
	return fmt.Sprintf("%s:%d", textutil.VisibleLine(f.File), f.Line)
}

// about returns the webhook and the field path of a finding.
func (f *Finding) about() string {
	if f.Webhook == "" {
		return textutil.VisibleLine(strings.TrimSpace(f.Path))
	}
	return textutil.VisibleLine(strings.TrimSpace(f.Webhook + "  " + f.Path))
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

// suppressedRules returns the sorted rules of the suppressed findings.
func (r *Report) suppressedRules() (rules []string) {
	for _, f := range r.Findings {
		if f.Suppressed != "" {
			rules = append(rules, f.Rule)
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

func (r *Report) summary(p screen.Painter) string {
	of := "in " + textutil.Count(r.Configurations, "configuration") + " with " + textutil.Count(r.Webhooks, "webhook")
	if r.Suppressed > 0 {
		of += fmt.Sprintf(" (%d suppressed: %s)", r.Suppressed, strings.Join(r.suppressedRules(), ", "))
	}
	if r.Errors+r.Warnings+r.Advice == 0 {
		return p.Green("no findings") + " " + of + "\n"
	}
	counts := []string{}
	if r.Errors > 0 {
		counts = append(counts, p.Red(textutil.Count(r.Errors, "error")))
	}
	if r.Warnings > 0 {
		counts = append(counts, p.Yellow(textutil.Count(r.Warnings, "warning")))
	}
	if r.Advice > 0 {
		counts = append(counts, textutil.CountAs(r.Advice, "piece of advice", "pieces of advice"))
	}
	return strings.Join(counts, ", ") + " " + of + "\n" +
		p.Faint(fmt.Sprintf("explanation: admitkit lint --explain %s", r.worst())) + "\n"
}

// worst returns the first rule with a finding of the highest severity.
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

// unsupportedForRules returns the error for an output format that supports only findings.
func unsupportedForRules(form string) error {
	return problem.New("-o %s is for findings only: rules need -o text or -o json", form)
}

// WriteRules writes the list of all rules.
func WriteRules(form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "json":
		return writeJSON(w, lint.Rules())
	case "junit", "sarif":
		return unsupportedForRules(form)
	}
	var text strings.Builder
	for _, r := range lint.Rules() {
		pad := strings.Repeat(" ", len("warning")-len(r.Severity))
		fmt.Fprintf(&text, "%s  %s%s  %s\n", p.Bold(r.ID), paint(p, r.Severity), pad, r.Title)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteRule writes the explanation of one rule.
func WriteRule(r *lint.Rule, form string, w io.Writer, p screen.Painter) error {
	switch form {
	case "json":
		return writeJSON(w, r)
	case "junit", "sarif":
		return unsupportedForRules(form)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s  %s\n\n", p.Bold(r.ID), paint(p, r.Severity), p.Bold(r.Title))
	text.WriteString(textutil.Wrap("  Why:   ", r.Why, width))
	text.WriteString(textutil.Wrap("  Fix:   ", r.Fix, width))
	fmt.Fprintf(&text, "  Read:  %s\n", r.Link)
	text.WriteString(textutil.Wrap("  Suppress:  ", fmt.Sprintf(`annotation lint.admitkit.dev/ignore: "%s=the reason"`, r.ID), width))
	_, err := io.WriteString(w, text.String())
	return err
}
