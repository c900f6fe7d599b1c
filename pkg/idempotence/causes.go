// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// group numbers the findings by what the webhook did: findings of one kind with the same patch operations at the same
// fields have one cause. A violation and advice are never in one group.
func (r *Report) group() {
	groups := 0
	for i, v := range r.Findings {
		v.Group = 0
		for _, known := range r.Findings[:i] {
			if known.Kind == v.Kind && (known.Verdict == Advice) == (v.Verdict == Advice) && sameDeed(known.deed, v.deed) {
				v.Group = known.Group
				break
			}
		}
		if v.Group == 0 {
			groups++
			v.Group = groups
		}
	}
}

// sameDeed reports whether one of two lists of operations contains the other.
func sameDeed(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) > 0 && !slices.ContainsFunc(a, func(op string) bool { return !slices.Contains(b, op) })
}

// inGroup returns the findings of a group: first the one that should be mended first.
func (r *Report) inGroup(group int) []*Violation {
	var all []*Violation
	for _, v := range r.Findings {
		if v.Group == group {
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b *Violation) int { return urgency(a) - urgency(b) })
	return all
}

// urgency returns the index of a finding's entry in priorities.
func urgency(v *Violation) int {
	return slices.IndexFunc(priorities, func(p priority) bool { return p.law == v.Law && (p.mode == "" || p.mode == v.FailureMode) })
}

// deedOf returns what the webhook did in a finding: the marked patch operations with the names of their fields, or the
// fields that differ, or those that the API server names.
func deedOf(v *Violation, changes []tree.Change) (deed []string) {
	add := func(op string, p tree.Path) {
		var names []string
		for _, step := range p {
			if !step.Element {
				names = append(names, step.Name)
			}
		}
		if text := op + " " + strings.Join(names, "/"); len(names) > 0 && !slices.Contains(deed, text) {
			deed = append(deed, text)
		}
	}
	for i := range v.Calls {
		c := &v.Calls[i]
		if len(c.Offending) == 0 {
			continue
		}
		c.eachOperation(func(n int, before, _ any, pointer string) {
			if slices.Contains(c.Offending, n) && strings.HasPrefix(pointer, "/") {
				add("patch", tree.At(before, pointer))
			}
		})
	}
	if len(deed) > 0 {
		return deed
	}
	for _, c := range changes {
		add("patch", c.Path)
	}
	for _, pointer := range objects.ProblemPaths(v.Summary) {
		add("refused", tree.At(v.Case.Object, pointer))
	}
	return deed
}

// mayBeIntended lists the failure modes that a webhook may have on purpose.
var mayBeIntended = []FailureMode{
	FailureOverwrites, FailureRemoves, FailureRemovesSample, FailureVaries, FailureTreatedUnlike, FailureIncomplete,
	FailureOrder, FailureNotTheSame, FailureNeverSettles,
}

// mostProposed is the number of exceptions that a finding proposes.
const mostProposed = 4

// proposed returns the exceptions that declare a finding as intended, or nil if that makes no sense.
func proposed(v *Violation, changes []tree.Change) (list []Exception) {
	if !slices.Contains(mayBeIntended, v.FailureMode) {
		return nil
	}
	if v.Case.Rival != "" && v.FailureMode == FailureNeverSettles {
		return []Exception{{Path: "rival:" + v.Case.Rival, Law: v.Law, Reason: "why both may change it"}}
	}
	if v.FailureMode == FailureNeverSettles {
		return nil
	}
	for _, path := range laws.Patterns(changes) {
		if len(list) == mostProposed {
			break
		}
		list = append(list, Exception{Path: path, Law: v.Law, Reason: "why this is intended"})
	}
	return list
}

// nearest returns the path of a proposed exception that is most like one that covered nothing, or "".
func (r *Report) nearest(e Exception) (best string) {
	most := 0
	for _, v := range r.Findings {
		for _, p := range v.Proposed {
			if e.Law != "" && e.Law != v.Law || strings.HasPrefix(p.Path, "rival:") {
				continue
			}
			if n := alike(e.Path, p.Path); n > most {
				best, most = p.Path, n
			}
		}
	}
	return best
}

// alike returns how many names two field paths share.
func alike(a, b string) (n int) {
	split := func(r rune) bool { return strings.ContainsRune(".[]*=", r) }
	names := strings.FieldsFunc(b, split)
	for _, name := range strings.FieldsFunc(a, split) {
		if slices.Contains(names, name) {
			n++
		}
	}
	return n
}
