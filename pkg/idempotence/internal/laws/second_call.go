// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// secondCall checks L1: the second call changes nothing, and the result is valid.
type secondCall struct{ *Trial }

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
