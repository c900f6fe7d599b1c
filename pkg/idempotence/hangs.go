// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// enoughUnanswered is the number of objects after which a webhook without any response counts as hanging.
const enoughUnanswered = 3

// hangs reports whether the webhook has never responded, and then ends the run, because every further call would take
// its whole timeout.
func (r *run) hangs(x *objects.Object, out *outcome) bool {
	if !out.late() || len(r.report.Kinds) > 0 {
		return false
	}
	n, random := 1, rand.New(rand.NewPCG(uint64(r.opts.seed), 2))
	for i := 1; i < 4*enoughUnanswered && n < enoughUnanswered; i++ {
		other, ok := r.valid(r.inputs.object(random, i))
		if !ok {
			continue
		}
		next := r.f(r.fresh(), query{object: other})
		if r.over() {
			break
		}
		if !next.late() {
			return false
		}
		if n++; len(other.Raw) < len(x.Raw) { // any shows it
			x, out = other, next
		}
	}
	if errors.Is(r.ctx.Err(), context.Canceled) || r.ctx.Err() == nil && n < enoughUnanswered {
		return false
	}
	r.tally.broken[L2], r.transportError.hung = true, true
	r.tally.checksOf[L2], r.tally.decided[L2], r.checks = n, n, r.checks+n
	name := out.calls[len(out.calls)-1].Exchange.Webhook
	i := slices.IndexFunc(r.subject.webhooks, func(w *webhook) bool { return w.Name == name })
	c := &Case{Law: L2, Object: x.Doc}
	r.report.found(r.violation(c, FailureHangs, fmt.Sprintf("no answer within timeoutSeconds (%d s) in %d of %s: is it hung?",
		r.subject.webhooks[i].timeout()/time.Second, n, textutil.Count(n, "call")), out))
	return true
}

// late reports whether the last call timed out.
func (o *outcome) late() bool { return len(o.calls) > 0 && o.calls[len(o.calls)-1].Exchange.late }
