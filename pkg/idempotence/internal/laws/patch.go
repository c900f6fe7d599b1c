// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// patch checks L10: the patch applies, and touches only what has to change.
type patch struct{ *Trial }

func (l patch) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	s := l.Fresh()
	out := l.F(s, session.Query{Object: x})
	if out.Fault != "" && out.FaultOf == session.BadPatch {
		return l.Finding(c, DoesNotApply, "the API server cannot apply the answer: "+out.Fault, out)
	}
	if !out.OK() {
		return nil
	}
	if again := l.F(s, session.Query{Object: out.After}); again.Fault != "" && again.FaultOf == session.BadPatch {
		return l.Finding(c, DoesNotApplyAgain, "the API server cannot apply the answer to the next call: "+again.Fault, out, again)
	}
	if v := l.lost(c, x, out, ""); v != nil {
		return v
	}
	if out.Patched && len(out.Calls) == 1 && sameDoc(x.Doc, out.After.Doc) {
		return l.noOp(c, "the webhook", out, out)
	}
	return nil
}
