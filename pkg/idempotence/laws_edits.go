// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// checkEdits checks L4a.
func (r *run) checkEdits(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	s := r.fresh()
	first := r.first(x)
	if !first.ok() {
		return nil
	}
	edited, ok := r.edited(first.after, c.Edits)
	if !ok {
		return nil
	}
	second := r.f(s, query{object: edited})
	if v := r.failed(c, second); v != nil {
		return v
	}
	if !second.ok() {
		return r.deniedLater(c, x, first, second)
	}
	if problems := r.problems(c.Law, second.after); len(problems) > 0 {
		return r.refused(c, "after an edit by another party, ", problems, first, second)
	}
	third := r.f(s, query{object: second.after})
	if third.fault == "" && !third.allowed {
		return r.violation(c, FailureDenied, "after an edit by another party it allows the object and then denies what it made of it: "+third.message, first, second, third)
	}
	if third.ok() {
		if changes := r.differences(c.Law, second.after, third.after); len(changes) > 0 {
			return r.violation(c, changeMode(changes), "after an edit by another party, two more calls differ: "+summary(changes), first, second, third)
		}
	}
	if parts(second.after.Doc) <= parts(edited.Doc) {
		return nil // what is there from before may stay, such as when the edit switches the webhook off
	}
	return r.accumulates(c, x, first, second)
}

// deniedLater reports whether the webhook denies an object after an edit but not if the edit came before the first
// call.
func (r *run) deniedLater(c *Case, x *objects.Object, first, second *outcome) *Violation {
	early, ok := r.edited(x, c.Edits)
	if !ok || second.fault != "" {
		return nil
	}
	s := r.fresh()
	fresh := r.f(s, query{object: early})
	if !fresh.ok() {
		return nil
	}
	if fresh = r.f(s, query{object: fresh.after}); !fresh.ok() {
		return nil // L2
	}
	return r.violation(c, FailureDeniedLater, "an edit by another party is denied after the first call, and would be allowed before it: "+second.message, first, second)
}

// accumulates compares with an object that was edited before the webhook ever saw it. An edit of what only
// the webhook has put there would have been none then.
func (r *run) accumulates(c *Case, x *objects.Object, first, second *outcome) *Violation {
	fresh := first
	if early, ok := r.edited(x, c.Edits); ok {
		s := r.fresh()
		if fresh = r.f(s, query{object: early}); !fresh.ok() {
			return nil
		}
		if fresh = r.f(s, query{object: fresh.after}); !fresh.ok() {
			return nil
		}
	} else if slices.ContainsFunc(c.Edits, func(e Edit) bool { return e.What == Insert }) {
		return nil
	}
	if n, want := parts(second.after.Doc), parts(fresh.after.Doc); n > want {
		return r.violation(c, FailureAccumulates, fmt.Sprintf("after an edit by another party there are %d containers and volumes, where there would be %d had the edit come first", n, want), first, second)
	}
	return nil
}

// parts counts the containers and volumes.
func parts(doc any) (n int) {
	tree.Lists(doc, func(p tree.Path, list []any) {
		switch p.Last() {
		case "containers", "initContainers", "volumes":
			n += len(list)
		}
	})
	return n
}

// checkLateAdditions checks L4b.
func (r *run) checkLateAdditions(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	early, ok := r.edited(x, c.Edits)
	if !ok || !addsOnly(x, early, c.Edits) {
		return nil
	}
	s := r.fresh()
	first := r.first(x)
	if !first.ok() {
		return nil
	}
	edited, ok := r.edited(first.after, c.Edits)
	if !ok || !addsOnly(first.after, edited, c.Edits) {
		return nil
	}
	late := r.f(s, query{object: edited})
	other := r.fresh()
	fresh := r.f(other, query{object: early})
	start := fresh
	if fresh.ok() {
		if again := r.f(other, query{object: fresh.after}); again.ok() {
			fresh = again
		}
	}
	switch {
	case late.ok() != fresh.ok():
		return r.violation(c, FailureDecidesDifferently, fmt.Sprintf("the object is %s when the addition comes between two calls, and %s when it was there before", late.verdict(), fresh.verdict()), first, late)
	case !late.ok():
		return nil
	}
	differences := r.content(c.Law, late.after, fresh.after)
	if len(differences) == 0 {
		return nil
	}
	v := r.violation(c, FailureTreatedUnlike, "what is added between two calls is not treated as if it had been there before: "+
		summary(differences), first, late, start, fresh)
	if r.setOnce(c.Law, x, first.after, late.after, fresh.after, atFront(c.Edits), r.twice) {
		v.Verdict = Advice
	}
	return v
}

func atFront(edits []Edit) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.Front })
}

// addsOnly reports whether the API server's defaults change nothing besides the additions.
func addsOnly(before, after *objects.Object, edits []Edit) bool {
	return !slices.ContainsFunc(tree.Changes(before.Doc, after.Doc), func(c tree.Change) bool {
		return !slices.ContainsFunc(edits, func(e Edit) bool { return c.Path.HasPrefix(e.Path) || e.Path.HasPrefix(c.Path) })
	})
}
