// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostRounds is the number of rounds after which two webhooks count as never settling.
const mostRounds = 8

// settles checks L12.
func (r *run) checkSettles(c *Case) *Violation {
	x, rival, ok := r.contest(c)
	if !ok {
		return nil
	}
	defer r.only(rival.of)()
	_, history, settled := r.alternate(x, rival, false)
	if settled || history == nil {
		return nil
	}
	i, changes := r.lastMove(c.Law, history)
	who := fmt.Sprintf("the webhook and another, %q, change the object in turns for ever", c.Rival)
	switch {
	case r.moves(c.Law, history, i-1):
	case i%2 == 0:
		who = fmt.Sprintf("the webhook changes the object in each call for ever, while another, %q, leaves it alone", c.Rival)
	default:
		who = fmt.Sprintf("another webhook, %q, changes the object in each call for ever, while this one leaves it alone", c.Rival)
	}
	shown := history[:3+i%2]
	if !r.moves(c.Law, shown, len(shown)-1) {
		shown = history[i-2-i%2 : i+1]
	}
	return r.violation(c, FailureNeverSettles, who+": "+summary(changes), shown...)
}

// lastMove returns the last turn that changes the object, in a history that does not settle.
func (r *run) lastMove(law Law, history []*outcome) (i int, changes []tree.Change) {
	for i = len(history) - 1; i > 2; i-- {
		if changes = r.differences(law, history[i-1].after, history[i].after); len(changes) > 0 {
			break
		}
	}
	return i, changes
}

// moves reports whether any turn after the first changes the object.
func (r *run) moves(law Law, history []*outcome, i int) bool {
	return len(r.differences(law, history[i-1].after, history[i].after)) > 0
}

// commutes checks L11.
func (r *run) checkOrder(c *Case) *Violation {
	x, rival, ok := r.contest(c)
	if !ok {
		return nil
	}
	defer r.only(rival.of)()
	first, history, settled := r.alternate(x, rival, false)
	second, other, also := r.alternate(x, rival, true)
	if !settled || !also || first == nil || second == nil {
		return nil // L12
	}
	differences := r.content(c.Law, first, second)
	if len(differences) == 0 {
		return nil
	}
	v := r.violation(c, FailureOrder, fmt.Sprintf("with another webhook, %q, the result depends on who is called first: %s",
		c.Rival, summary(differences)), append(history[:min(2, len(history))], other[:min(2, len(other))]...)...)
	if !slices.ContainsFunc(differences, func(d tree.Change) bool {
		return !writes(history[0].after, x, d.Path) || !writes(other[0].after, x, d.Path)
	}) {
		v.Verdict = Advice // both are meant to write there
	}
	settle := func(o *objects.Object) *objects.Object {
		last, _, _ := r.alternate(o, rival, false)
		return last
	}
	if rival.stranger && r.setOnce(c.Law, x, history[0].after, first, second, strings.HasSuffix(c.Rival, edits.FrontRival), settle) {
		v.Verdict = Advice
	}
	return v
}

// writes reports whether a call changed the value at a path.
func writes(after, x *objects.Object, p tree.Path) bool {
	return slices.ContainsFunc(tree.Changes(x.Doc, after.Doc), func(c tree.Change) bool { return p.HasPrefix(c.Path) || c.Path.HasPrefix(p) })
}

// only reduces the subject to one of its webhooks until the returned function is called.
func (r *run) only(member *Subject) (undo func()) {
	whole, known := r.subject, r.memo
	if member != nil {
		r.subject, r.memo.first = *member, nil
	}
	return func() { r.subject, r.memo = whole, known }
}

// contest returns x and the rival of a case.
func (r *run) contest(c *Case) (x *objects.Object, rival rival, ok bool) {
	x, valid := r.object(c)
	rival, known := r.rivals[c.Rival]
	return x, rival, valid && known
}

// alternate calls the webhook and the rival in turns until neither changes the object. It returns no history if a call
// fails.
func (r *run) alternate(x *objects.Object, other rival, otherFirst bool) (last *objects.Object, history []*outcome, settled bool) {
	s := r.fresh()
	call := other.start(r)
	at := x
	for range mostRounds {
		changed := false
		for turn := range 2 {
			var out *outcome
			if (turn == 0) == otherFirst {
				out = call(at)
			} else {
				out = r.f(s, query{object: at})
			}
			if !out.ok() {
				return nil, nil, true
			}
			changed = changed || len(r.differences(L12, at, out.after)) > 0
			history, at = append(history, out), out.after
		}
		if !changed {
			return at, history, true
		}
	}
	return at, history, false
}
