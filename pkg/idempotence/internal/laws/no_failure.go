// SPDX-License-Identifier: Apache-2.0

package laws

import "github.com/admitkit/admitkit/pkg/idempotence/internal/session"

// noFailure checks L2: an allowed object is allowed again, and no valid object makes the webhook fail.
type noFailure struct{ *Trial }

func (l noFailure) check(c *Case) *Finding {
	x, ok := l.ObjectOf(c)
	if !ok {
		return nil
	}
	s := l.Fresh()
	first := l.F(s, session.Query{Object: x})
	if v := l.failed(c, first); v != nil || !first.Allowed || first.Fault != "" {
		return v
	}
	again := l.F(s, session.Query{Object: first.After})
	if v := l.failed(c, again); v != nil {
		return v
	}
	if again.Fault == "" && !again.Allowed {
		return l.Finding(c, Denied, "the webhook allows the object and then denies its own result: "+again.Message, first, again)
	}
	return nil
}
