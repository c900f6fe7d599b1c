// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// secondCall is L1.
type secondCall struct{ *Checker }

func (l secondCall) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	s := l.Fresh()
	first := l.F(s, session.Query{Object: x})
	if !first.OK() {
		return nil
	}
	if problems := l.problems(c.Law, first.After); len(problems) > 0 {
		return l.refused(c, "", problems, first)
	}
	return l.unchanged(c, first, l.F(s, session.Query{Object: first.After}))
}

// unchanged checks that a call does not change the previous call's result.
func (k *Checker) unchanged(c *Case, before, again *session.Outcome) *Finding {
	if !again.OK() {
		return nil // L2
	}
	changes := k.differences(c.Law, before.After, again.After)
	if k.Impure && changeMode(changes) != Grows {
		return nil // the answer to one request may differ as much
	}
	if len(changes) > 0 {
		return k.Finding(c, changeMode(changes), "the next call changes it again: "+summary(changes), before, again)
	}
	if again.Patched && len(k.Webhooks) == 1 && tree.Equal(before.After.Doc, again.After.Doc) {
		return k.Finding(c, NoOpPatch, "the next call has nothing to do, but sends a patch: the API server counts that as a change and may call other webhooks again", before, again)
	}
	return nil
}

// failed reports a call without a decision. Faults of the envelope belong to L8, faults of the patch to L10.
func (k *Checker) failed(c *Case, o *session.Outcome) *Finding {
	if o.Fault == "" || o.FaultOf != session.NoDecision {
		return nil
	}
	return k.Finding(c, ServerError, "the webhook fails: "+textutil.FirstLine(o.Fault), o)
}
