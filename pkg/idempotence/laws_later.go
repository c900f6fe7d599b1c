// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// nextSecond is a variant of L3 that finds webhooks that read the clock. They mostly write whole seconds, and many calls of
// a run happen in one second.
const nextSecond Variant = "next second"

// A stopwatch records a call and its time.
type stopwatch struct {
	at   time.Time
	x    *objects.Object
	call *outcome
}

func (w *stopwatch) start(x *objects.Object, call *outcome) {
	if w.x == nil {
		*w = stopwatch{time.Now(), x, call}
	}
}

// checkNextSecond checks L3 with a later call.
func (r *run) checkNextSecond(c *Case, x *objects.Object) *Violation {
	if r.clock.x == nil || !sameMap(r.clock.x.Doc, c.Object) {
		r.clock = stopwatch{}
		r.clock.start(x, r.f(r.fresh(), query{object: x}))
	}
	first := r.clock.call
	next := time.NewTimer(time.Until(r.clock.at.Truncate(time.Second).Add(time.Second)))
	defer next.Stop()
	select {
	case <-next.C:
		return r.sameAnswer(c, first, r.f(r.fresh(), query{object: x}), "sent a second later")
	case <-r.ctx.Done():
		return nil
	}
}
