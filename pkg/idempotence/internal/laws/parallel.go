// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// parallelRounds is the number of times that a check sends all its requests at once. parallelCalls is the minimum
// number of requests in a round. A conflict between two calls seldom appears in the first round.
const parallelRounds, parallelCalls = 40, 8

// inParallel checks L3 with requests for several objects at the same time: each must get the result that a fresh
// instance gives for it alone.
func (l pure) inParallel(c *Case, x *objects.Object) *Finding {
	if len(l.Webhooks) != 1 {
		return nil
	}
	var queries []session.Query
	var alone []*session.Outcome
	add := func(o *objects.Object) {
		q := session.Query{Object: o, Operation: l.Operation}
		if out := l.F(l.Fresh(), q); len(out.Calls) == 1 {
			queries, alone = append(queries, l.WithOld(q)), append(alone, out)
		}
	}
	add(x)
	for _, doc := range c.Before {
		if o, ok := l.Valid(doc); ok {
			add(o)
		}
	}
	if len(queries) < 2 {
		return nil
	}
	for n := len(queries); len(queries) < parallelCalls; n++ {
		queries, alone = append(queries, queries[n%2]), append(alone, alone[n%2])
	}
	for range parallelRounds {
		answers, ok := l.Session.Parallel(l.Webhooks[0], queries)
		if !ok {
			return nil
		}
		l.Checks++
		for i, a := range answers {
			out := &session.Outcome{Answer: a, Calls: []*session.Answer{a}, Patched: len(a.Patch) > 0}
			if l.Over() || a.Exchange.Late && !alone[i].Late() {
				return nil // the machine is too busy to decide
			}
			l.count(queries[i], out)
			if v := l.sameAnswer(c, alone[i], out, "sent at the same time as others"); v != nil {
				v.Case.Object = queries[i].Object.Doc
				v.Case.Before = slices.Clone(c.Before)
				return v
			}
		}
	}
	return nil
}
