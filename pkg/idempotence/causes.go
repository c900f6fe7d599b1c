// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// group sets Group of each finding. Findings for one kind of object whose patch operations change the same fields are
// in one group, because they most likely have one cause. Violations and advice are never in one group.
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

// dropConsequences removes advice if a violation of L1 has the same patch operations. The violation explains them. The
// advice would give a wrong cause, such as a later addition.
func (r *Report) dropConsequences() {
	all := slices.Clone(r.Findings)
	r.Findings = slices.DeleteFunc(r.Findings, func(advice *Violation) bool {
		return advice.Verdict == Advice && slices.ContainsFunc(all, func(v *Violation) bool {
			return v.Law == L1 && v.Verdict != Advice && v.Kind == advice.Kind && len(v.deed) == len(advice.deed) && sameDeed(v.deed, advice.deed) && !slices.Contains(ownFaults, advice.FailureMode)
		})
	})
}

// ownFaults lists the failure modes that a violation of L1 does not explain: the user loses something.
var ownFaults = []FailureMode{FailureRemoves, FailureRemovesSample, FailureOverwrites, FailureOverwritesZero, FailureLostByReplace, FailureIgnoresChange}

// sameDeed reports whether one of two lists from deedOf contains the other.
func sameDeed(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) > 0 && !slices.ContainsFunc(a, func(op string) bool { return !slices.Contains(b, op) })
}

// inGroup returns the findings of a group, in the order in which to fix them.
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

// deedOf describes what the webhook did in a finding, so that findings can be compared. It returns the marked patch
// operations. If there are none, it returns the changed fields and the fields that the API server names in its errors.
func deedOf(v *Violation, changes []tree.Change) (deed []string) {
	if v.FailureMode == FailureHangs {
		return []string{"hang"}
	}
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
	FailureOverwrites, FailureOverwritesZero, FailureRemoves, FailureRemovesSample, FailureVaries, FailureTreatedUnlike, FailureIncomplete,
	FailureOrder, FailureNotTheSame, FailureNeverSettles, FailureRegenerates, FailureCannotReplace, FailureNeedsUpdate, FailureIgnoresChange,
}

// mostProposed is the maximum number of exceptions that a report proposes for a finding.
const mostProposed = 4

// proposed returns the exceptions that declare a finding as intended. It returns nil if such behaviour cannot be
// intended.
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

// nearest returns the proposed path that shares the most names with e, an exception that covered nothing. It returns ""
// if none shares a name.
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
