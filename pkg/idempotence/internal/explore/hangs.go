// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// enoughUnanswered is the number of objects without a response after which a webhook counts as hanging.
const enoughUnanswered = 3

// hangs reports whether the webhook never responds. If so, it reports a finding and ends the run, because every further
// call would last until its timeout. x is the first object and out its result.
func (r *Run) hangs(x *objects.Object, out *session.Outcome) bool {
	if !out.Late() || !r.FirstKind {
		return false
	}
	n, random := 1, rand.New(rand.NewPCG(uint64(r.Seed), 2))
	for i := 1; i < 4*enoughUnanswered && n < enoughUnanswered; i++ {
		other, ok := r.Valid(r.inputs.object(random, i))
		if !ok {
			continue
		}
		next := r.F(r.Fresh(), session.Query{Object: other})
		if r.Over() {
			break
		}
		if !next.Late() {
			return false
		}
		if n++; len(other.Raw) < len(x.Raw) { // report the smallest of the objects
			x, out = other, next
		}
	}
	if errors.Is(r.Ctx.Err(), context.Canceled) || r.Ctx.Err() == nil && n < enoughUnanswered {
		return false
	}
	r.Tally.Broken[laws.L2], r.Connection.Hung = true, true
	r.Tally.Tried[laws.L2], r.Tally.Decided[laws.L2], r.Checks = n, n, r.Checks+n
	c := &laws.Case{Law: laws.L2, Object: x.Doc}
	r.Found(r.Finding(c, laws.Hangs, fmt.Sprintf("no answer within timeoutSeconds (%d s) in %d of %s: does it hang?",
		r.timeoutOf(out)/time.Second, n, textutil.Count(n, "call")), out))
	return true
}

// reportLate reports a finding about an object to which the webhook did not respond in time, although it responds to
// others. No other law is checked on the object, because each call would last until the timeout.
func (r *Run) reportLate(x *objects.Object, out *session.Outcome) {
	if r.Over() || slices.Contains(r.Without, laws.L2) {
		return
	}
	r.Checks++
	r.Tally.Tried[laws.L2]++
	r.Tally.Decided[laws.L2]++
	c := &laws.Case{Law: laws.L2, Object: x.Doc}
	f := r.Finding(c, laws.Hangs, fmt.Sprintf("no answer within timeoutSeconds (%d s) for this object, while others are answered",
		r.timeoutOf(out)/time.Second), out)
	if !r.Tally.knows(f, "") {
		r.Tally.Add(f, "")
		r.Found(f)
	}
}

// timeoutOf returns the timeout of the webhook that was called last.
func (r *Run) timeoutOf(out *session.Outcome) time.Duration {
	name := out.Calls[len(out.Calls)-1].Exchange.Webhook
	return r.Webhooks[slices.IndexFunc(r.Webhooks, func(w *session.Webhook) bool { return w.Name == name })].Timeout()
}
