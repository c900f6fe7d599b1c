// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Rival is another webhook, or another party, that changes the same objects as the tested webhooks.
type Rival struct {
	name          string
	unaware       bool               // simulated, so it was written without knowledge of the tested webhook
	of            []*session.Webhook // the tested webhooks beside which it is called, or nil for all
	edits.Conduct                    // of a simulated rival
	ignores       func(p tree.Path) bool
	// start creates a fresh instance of the rival and returns a function that calls it. x is the object of the case.
	start func(t *Trial, x *objects.Object) func(*objects.Object) *session.Outcome
}

// Rivals has the rivals of the tested webhooks, by name.
type Rivals map[string]Rival

func (r Rivals) add(other Rival) {
	for n, name := 2, other.name; ; n++ {
		if _, taken := r[other.name]; !taken {
			break
		}
		other.name = fmt.Sprintf("%s (%d)", name, n) // several rivals may have the same name
	}
	r[other.name] = other
}

// AddWebhooks adds a rival for each list of declared webhooks. It also adds a rival for each pair of tested webhooks:
// the second webhook is a rival of the first.
func (r Rivals) AddWebhooks(declared [][]*session.Webhook, subject []*session.Webhook) {
	for _, webhooks := range declared {
		r.add(Rival{name: webhooks[0].Name, start: callsTo(webhooks)})
	}
	for i, one := range subject {
		for _, other := range subject[i+1:] {
			r.add(Rival{name: one.Name + " and " + other.Name, of: []*session.Webhook{one}, start: callsTo([]*session.Webhook{other})})
		}
	}
}

// callsTo returns a function for Rival.start: the rival calls the webhooks.
func callsTo(webhooks []*session.Webhook) func(*Trial, *objects.Object) func(*objects.Object) *session.Outcome {
	return func(t *Trial, _ *objects.Object) func(*objects.Object) *session.Outcome {
		other := *t
		other.Session = t.With(webhooks)
		instances := other.Fresh()
		return func(o *objects.Object) *session.Outcome {
			if !other.Handles(t.Operation) {
				return session.Admitted(o)
			}
			return other.F(instances, session.Query{Object: o})
		}
	}
}

// RivalNames returns the sorted names of the rivals for which there is no exception.
func (t *Trial) RivalNames() []string {
	var names []string
	for name := range t.Rivals {
		if !slices.ContainsFunc(t.Exceptions, func(e Exception) bool { return e.Path == "rival:"+name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// mostRounds is the number of rounds after which two webhooks count as never settling.
const mostRounds = 8

// only replaces the tested webhooks by members, until undo is called. If members is nil, it changes nothing.
func (t *Trial) only(members []*session.Webhook) (undo func()) {
	if members == nil {
		return func() {}
	}
	whole, known := t.Webhooks, t.memo
	t.Webhooks, t.memo.first, t.memo.contest = members, nil, nil
	return func() { t.Webhooks, t.memo = whole, known }
}

// rivalOf returns the object and the rival of a case. It returns false if the object is invalid or the run has no such
// rival.
func (t *Trial) rivalOf(c *Case) (x *objects.Object, rival Rival, ok bool) {
	x, valid := t.ObjectOf(c)
	rival, known := t.Rivals[c.Rival]
	return x, rival, valid && known
}

// A contest is what a webhook and a rival did to an object in turns.
type contest struct {
	rival   string
	last    *objects.Object    // nil if a call failed
	history []*session.Outcome // all results
	settled bool               // in the end, neither changed the object any more
	plain   int                // see Trial
	other   int
}

// webhookFirst calls the webhook and the rival in turns, as alternate does. L12 and L11 share the results for the
// object of their cases.
func (t *Trial) webhookFirst(x *objects.Object, rival Rival) contest {
	if t.memo.object != x || t.Unshared {
		return t.alternate(x, rival, false)
	}
	known := t.memo.contest
	if known == nil || known.rival != rival.name {
		plain, other := t.plain, t.other
		made := t.alternate(x, rival, false)
		made.rival, made.plain, made.other = rival.name, t.plain-plain, t.other-other
		t.memo.contest = &made
	} else {
		t.plain, t.other = t.plain+known.plain, t.other+known.other
	}
	out := *t.memo.contest
	out.history = slices.Clone(out.history)
	return out
}

// alternate calls the webhook and the rival in turns until neither changes the object, at most mostRounds times.
func (t *Trial) alternate(x *objects.Object, other Rival, otherFirst bool) contest {
	var history []*session.Outcome
	s := t.Fresh()
	call := other.start(t, x)
	at, nameless := x, objects.NameOf(x) == ""
	for range mostRounds {
		changed := false
		for turn := range 2 {
			var out *session.Outcome
			if (turn == 0) == otherFirst {
				out = call(at)
			} else {
				out = t.F(s, session.Query{Object: at, Nameless: nameless})
			}
			history = append(history, out)
			if !out.OK() {
				return contest{history: history, settled: true}
			}
			changed = changed || slices.ContainsFunc(t.differences(L12, at, out.After), func(c tree.Change) bool {
				return other.ignores == nil || !other.ignores(c.Path)
			})
			at = out.After
		}
		if !changed {
			return contest{last: at, history: history, settled: true}
		}
	}
	return contest{last: at, history: history}
}
