// SPDX-License-Identifier: Apache-2.0

package idempotence

import "fmt"

// mostRounds is how often two webhooks take turns before they are said never to settle.
const mostRounds = 8

// settles is L12.
func (r *run) settles(c *Case) *Violation {
	x, rival, ok := r.contest(c)
	if !ok {
		return nil
	}
	_, history, settled := r.alternate(x, rival, false)
	if settled || history == nil {
		return nil
	}
	last := history[len(history)-1]
	return r.violation(c, "never settles", fmt.Sprintf("the webhook and another, %q, change the object in turns for ever: %s",
		c.Rival, summary(r.differences(c.Law, history[len(history)-2].after, last.after))), history[len(history)-3:]...)
}

// commutes is L11.
func (r *run) commutes(c *Case) *Violation {
	x, rival, ok := r.contest(c)
	if !ok {
		return nil
	}
	first, history, settled := r.alternate(x, rival, false)
	second, other, also := r.alternate(x, rival, true)
	if !settled || !also {
		return nil // L12
	}
	if len(r.content(c.Law, first, second)) == 0 {
		return nil
	}
	v := r.violation(c, "depends on the order", fmt.Sprintf("with another webhook, %q, the result depends on who is called first: %s",
		c.Rival, summary(r.content(c.Law, first, second))), append(history[:min(2, len(history))], other[:min(2, len(other))]...)...)
	return v
}

// contest finds x and the rival of a case.
func (r *run) contest(c *Case) (x *object, rival rival, ok bool) {
	x, valid := r.object(c)
	rival, known := r.rivals[c.Rival]
	return x, rival, valid && known
}

// alternate has the webhook and the rival take turns until neither changes the object. It
// returns no history where a call did not come through.
func (r *run) alternate(x *object, other rival, otherFirst bool) (last *object, history []*outcome, settled bool) {
	s := r.fresh()
	call := other.start(r)
	at := x
	for round := range mostRounds {
		before := at
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
			history, at = append(history, out), out.after
		}
		if round > 0 && len(r.differences(L12, before, at)) == 0 {
			return at, history, true
		}
	}
	return at, history, false
}
