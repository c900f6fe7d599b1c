// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// afterEdits checks L4a: after edits by other parties between two calls, the result is valid and further calls do not
// change it.
type afterEdits struct{ *Trial }

func (l afterEdits) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	s := l.Fresh()
	first := l.first(x)
	if !first.OK() {
		return nil
	}
	edited, ok := l.Edited(first.After, c.Edits)
	if !ok {
		return nil
	}
	second := l.F(s, session.Query{Object: edited})
	if v := l.failed(c, second); v != nil {
		if edits.OfIdentity(c.Edits) && l.failsEarly(c, x) {
			return nil
		}
		return v
	}
	if !second.OK() {
		return l.deniedLater(c, x, first, second)
	}
	if problems := l.problems(c.Law, second.After); len(problems) > 0 {
		return l.refused(c, "after an edit by another party, ", problems, first, second)
	}
	third := l.F(s, session.Query{Object: second.After})
	if third.Fault == "" && !third.Allowed {
		return l.Finding(c, Denied, "after an edit by another party, the webhook allows the object and then denies its own result: "+third.Message, first, second, third)
	}
	if third.OK() {
		if changes := l.differences(c.Law, second.After, third.After); len(changes) > 0 {
			v := l.Finding(c, changeMode(changes), "after an edit by another party, two more calls differ: "+summary(changes), first, second, third)
			v.Advice = !slices.ContainsFunc(changes, func(c tree.Change) bool { return !isSlightMove(c) }) && l.settlesNow(s, third.After) ||
				onlyRepeats(second.After.Doc, third.After.Doc)
			return v
		}
	}
	if v := l.afterOtherForm(c, edited, first, second); v != nil {
		return v
	}
	if v := l.addsNameAgain(c, edited, first, second); v != nil {
		return v
	}
	if v := l.prefixesAgain(c, x, first, second); v != nil {
		return v
	}
	if parts(second.After.Doc) <= parts(edited.Doc) && len(duplicates(second.After.Doc)) <= len(duplicates(edited.Doc)) {
		return nil // the webhook added nothing, for example because the edit disables it
	}
	v := l.accumulates(c, x, first, second)
	if v != nil && edits.OfIdentity(c.Edits) {
		v.Advice = true // the parts of the original may stay in a copy
	}
	return v
}

// failsEarly reports whether the webhook also fails if the edits come before the first call. A webhook that cannot read
// the settings of a namespace fails for every object there.
func (l afterEdits) failsEarly(c *Case, x *objects.Object) bool {
	early, ok := l.Edited(x, c.Edits)
	return ok && l.F(l.Fresh(), session.Query{Object: early}).Fault != ""
}

// settlesNow reports whether another call does not change an object.
func (t *Trial) settlesNow(s session.Instances, o *objects.Object) bool {
	out := t.F(s, session.Query{Object: o})
	return out.OK() && len(t.differences(L4a, o, out.After)) == 0
}

// deniedLater returns a finding if the webhook denies an object after an edit, but allows it if the edit came
// before the first call.
func (l afterEdits) deniedLater(c *Case, x *objects.Object, first, second *session.Outcome) *Finding {
	early, ok := l.Edited(x, c.Edits)
	if !ok || second.Fault != "" || edits.OfIdentity(c.Edits) {
		return nil // the copy of an object may be denied for parts that belong to the original
	}
	s := l.Fresh()
	fresh := l.F(s, session.Query{Object: early})
	if !fresh.OK() {
		return nil
	}
	if fresh = l.F(s, session.Query{Object: fresh.After}); !fresh.OK() {
		return nil // L2 reports it
	}
	return l.Finding(c, DeniedLater, "the webhook denies an edit by another party after the first call, but allows it before: "+second.Message, first, second)
}

// accumulates returns a finding if the object has too many containers and volumes, or too many equal elements in its
// lists. It compares with an object that had the edits before the first call. Edits of the webhook's own parts cannot
// come before that call, so they are compared with the result of the first call. The elements of an edited list do not
// count, such as those of a command: the webhook may have to add its part again.
func (l afterEdits) accumulates(c *Case, x *objects.Object, first, second *session.Outcome) *Finding {
	fresh := first
	if early, ok := l.Edited(x, c.Edits); ok {
		s := l.Fresh()
		if fresh = l.F(s, session.Query{Object: early}); !fresh.OK() {
			return nil
		}
		if fresh = l.F(s, session.Query{Object: fresh.After}); !fresh.OK() {
			return nil
		}
	} else if slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return e.What == edits.Insert }) {
		return nil
	}
	if n, want := parts(second.After.Doc), parts(fresh.After.Doc); n > want {
		return l.Finding(c, Accumulates, fmt.Sprintf("after an edit by another party there are %d containers and volumes, but only %d if the edit comes before the first call", n, want), first, second)
	}
	before, after := duplicates(fresh.After.Doc), duplicates(second.After.Doc)
	if len(after) <= len(before) {
		return nil
	}
	for _, r := range after {
		known := slices.ContainsFunc(before, func(b duplicate) bool { return b.list.String() == r.list.String() })
		edited := slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return e.Path.HasPrefix(r.list) || r.list.HasPrefix(e.Path) })
		if !known && !edited && !l.excepted(c.Law, r.list) {
			v := l.Finding(c, Accumulates, fmt.Sprintf("after an edit by another party, the webhook adds an element again: %s has %s twice", r.list, tree.Encode(r.element)), first, second)
			v.Advice = slices.Contains(ofTerms, r.list.Last()) || isHarmlessTwice(r.list) && !slices.ContainsFunc(c.Edits, func(e edits.Edit) bool { return edits.IsNote(e.Path) })
			return v
		}
	}
	return nil
}

// allOrAny are lists of conditions, of which either all or at least one must be true.
var allOrAny = []string{
	"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "matchExpressions", "matchFields", "tolerations",
}

// ofTerms are the lists of conditions in selectors and affinities. A webhook that adds a condition again breaks L1. Under
// the other laws this is only advice, because a repeated condition has no effect.
var ofTerms = []string{"nodeSelectorTerms", "matchExpressions", "matchFields"}

// onlyRepeats reports whether two documents differ only in repeated conditions.
func onlyRepeats(a, b any) bool {
	return !tree.Equal(a, b) && tree.Equal(withoutRepeats("", a), withoutRepeats("", b))
}

// withoutRepeats returns a value of the field name without repeated conditions.
func withoutRepeats(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, inner := range value {
			out[name] = withoutRepeats(name, inner)
		}
		return out
	case []any:
		out := []any{}
		for _, element := range value {
			element = withoutRepeats("", element)
			if !slices.Contains(ofTerms, name) || !slices.ContainsFunc(out, func(e any) bool { return tree.Equal(e, element) }) {
				out = append(out, element)
			}
		}
		return out
	}
	return value
}

// isHarmlessTwice reports whether a duplicate of an element has no effect in a list. A webhook that completes several
// such lists together adds duplicates after one of the lists has changed. But if only an annotation has changed,
// duplicates show that the webhook does not look at the lists at all.
func isHarmlessTwice(list tree.Path) bool { return slices.Contains(allOrAny, list.Last()) }

// parts returns the number of containers and volumes in a document.
func parts(doc any) (n int) {
	tree.Lists(doc, func(p tree.Path, list []any) {
		switch p.Last() {
		case "containers", "initContainers", "volumes":
			n += len(list)
		}
	})
	return n
}

// A duplicate is a list element that equals an earlier element of its list.
type duplicate struct {
	list    tree.Path
	element any
}

// duplicates returns all duplicates in a document.
func duplicates(doc any) (all []duplicate) {
	tree.Lists(doc, func(p tree.Path, list []any) {
		for i, element := range list {
			if slices.ContainsFunc(list[:i], func(earlier any) bool { return tree.Equal(earlier, element) }) {
				all = append(all, duplicate{p, element})
			}
		}
	})
	return all
}
