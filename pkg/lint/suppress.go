// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IgnoreAnnotation is the annotation of a configuration that suppresses findings about it. Its value is a list such as
// "AK203=reason; AK402@webhook.example.com=reason". Line breaks can replace the semicolons.
const IgnoreAnnotation = "lint.admitkit.dev/ignore"

// A suppression is one entry of Options.Ignore or of an annotation.
type suppression struct {
	Ignore
	of   *configuration // nil for an entry of Options.Ignore
	at   string         // field path of the entry
	used bool
}

// suppress marks suppressed findings and reports suppressions that have no effect.
func (l *linter) suppress() {
	var all []*suppression
	for i, entry := range l.options.Ignore {
		entry.Rule = l.ruleID(entry.Rule)
		all = append(all, &suppression{Ignore: entry, at: fmt.Sprintf("ignore[%d]", i)})
	}
	at := field.NewPath("metadata", "annotations").Key(IgnoreAnnotation).String()
	for _, c := range l.configurations {
		for _, e := range entries(c.Annotations[IgnoreAnnotation]) {
			rule, webhook, _ := strings.Cut(e.name, "@")
			all = append(all, &suppression{Ignore: Ignore{Rule: l.ruleID(rule), Webhook: webhook, Reason: e.value}, of: c, at: at})
		}
	}
	for i := range l.findings {
		for _, s := range all {
			if s.Reason != "" && s.covers(&l.findings[i]) {
				s.used = true
				l.findings[i].Suppressed = s.Reason
			}
		}
	}
	for _, s := range all {
		l.checkSuppression(s)
	}
}

// ruleID returns the ID of a rule, ignoring case. It returns unknown IDs unchanged.
func (l *linter) ruleID(written string) string {
	for id := range l.rules {
		if strings.EqualFold(id, written) {
			return id
		}
	}
	return written
}

// nearest returns the rule whose ID has the longest common prefix with an unknown ID. Of several such rules, it returns
// the one whose next digit is closest. It returns nil if the first digit differs from that of all rules.
func nearest(written string) *Rule {
	written = strings.ToUpper(written)
	var best *Rule
	same, apart := len("AK1"), 0
	for _, r := range Rules() {
		n := 0
		for n < len(r.ID) && n < len(written) && r.ID[n] == written[n] {
			n++
		}
		distance := 0
		if n < len(r.ID) && n < len(written) {
			distance = max(int(r.ID[n])-int(written[n]), int(written[n])-int(r.ID[n]))
		}
		if n > same || n == same && (best == nil || distance < apart) {
			best, same, apart = &r, n, distance
		}
	}
	return best
}

// An entry is one "name=value" of an annotation.
type entry struct{ name, value string }

func entries(annotation string) []entry {
	var all []entry
	for _, text := range strings.FieldsFunc(annotation, func(r rune) bool { return r == ';' || r == '\n' }) {
		name, value, _ := strings.Cut(text, "=")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); name+value != "" {
			all = append(all, entry{name, value})
		}
	}
	return all
}

func (s *suppression) covers(f *Finding) bool {
	if s.Rule != f.Rule || (s.of != nil && s.of.index != f.Index) {
		return false
	}
	return matchesPattern(s.Object, f.Object) && matchesPattern(s.Webhook, f.Webhook)
}

func matchesPattern(pattern, name string) bool {
	if pattern == "" || pattern == name {
		return true
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// concerns reports whether a suppression is about a configuration of the input. If the suppression names a webhook, the
// configuration must also have a matching webhook.
func (l *linter) concerns(s *suppression) bool {
	for _, c := range l.configurations {
		if !matchesPattern(s.Object, c.String()) {
			continue
		}
		if s.Webhook == "" || slices.ContainsFunc(c.webhooks, func(w *webhook) bool { return matchesPattern(s.Webhook, w.Name) }) {
			return true
		}
	}
	return false
}

// checkSuppression reports a suppression that has no effect.
func (l *linter) checkSuppression(s *suppression) {
	var rule, message string
	switch known := l.rules[s.Rule]; {
	case known.ID == "":
		rule, message = "AK902", fmt.Sprintf("the rule %q does not exist", s.Rule)
		if near := nearest(s.Rule); near != nil {
			message += fmt.Sprintf("; the closest ID is %s, %q", near.ID, near.Title)
		}
	case s.Reason == "":
		rule, message = "AK901", fmt.Sprintf("%s is suppressed without a reason", s.Rule)
	case !s.used && s.of == nil && !l.concerns(s):
		return // it may be for a webhook that another run checks, or that will be added again
	case !s.used:
		rule, message = "AK903", fmt.Sprintf("no finding matches %s", strings.TrimSuffix(s.Rule+" at "+s.Webhook, " at "))
	default:
		return
	}
	f := Finding{Rule: rule, Severity: l.rules[rule].Severity, Index: -1, Path: s.at, Message: message, Fix: l.rules[rule].Fix}
	if s.of != nil {
		f.Object, f.Index = s.of.String(), s.of.index
		if rule == "AK902" {
			f.Message += `: ";" and line breaks separate entries`
		}
	}
	l.findings = append(l.findings, f)
}
