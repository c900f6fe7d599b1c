// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// IgnoreAnnotation suppresses findings about the configuration that it is on: "AK203=reason;
// AK402@webhook.example.com=reason", with line breaks for semicolons if one likes.
const IgnoreAnnotation = "lint.admitkit.dev/ignore"

// A suppression is one entry.
type suppression struct {
	Ignore
	of   *configuration // nil if of Options
	at   string
	used bool
}

// suppress marks findings, and reports entries that are of no use.
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
		l.judge(s)
	}
}

// ruleID returns the ID of a rule, however its letters are written.
func (l *linter) ruleID(written string) string {
	for id := range l.rules {
		if strings.EqualFold(id, written) {
			return id
		}
	}
	return written
}

// nearest returns the rule whose ID begins like what was written, as far as may be and at least with its hundred; and
// of those the next by number.
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

// An entry of an annotation is a name and what is said of it.
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
	return fits(s.Object, f.Object) && fits(s.Webhook, f.Webhook)
}

func fits(pattern, name string) bool {
	if pattern == "" || pattern == name {
		return true
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// holds reports whether a configuration of that kind and name is among the objects.
func (l *linter) holds(pattern string) bool {
	for _, c := range l.configurations {
		if fits(pattern, c.String()) {
			return true
		}
	}
	return false
}

func (l *linter) judge(s *suppression) {
	var rule, message string
	switch known := l.rules[s.Rule]; {
	case known.ID == "":
		rule, message = "AK902", fmt.Sprintf("there is no rule %q", s.Rule)
		if near := nearest(s.Rule); near != nil {
			message += fmt.Sprintf(", and the nearest is %s, %q", near.ID, near.Title)
		}
	case s.Reason == "":
		rule, message = "AK901", fmt.Sprintf("%s is suppressed without a reason", s.Rule)
	case !s.used && s.of == nil && !l.holds(s.Object):
		return // it may be for what is held against the rules another time
	case !s.used:
		rule, message = "AK903", fmt.Sprintf("there is no finding of %s to suppress", strings.TrimSuffix(s.Rule+" at "+s.Webhook, " at "))
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
