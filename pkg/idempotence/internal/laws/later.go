// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"context"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// A stopwatch records a call and its time.
type stopwatch struct {
	at   time.Time
	x    *objects.Object
	call *session.Outcome
}

func (w *stopwatch) start(x *objects.Object, call *session.Outcome) {
	if w.x == nil {
		*w = stopwatch{time.Now(), x, call}
	}
}

// checkInNextSecond checks L3 with a later call.
func (l pure) checkInNextSecond(c *Case, x *objects.Object) *Finding {
	if l.clock.x == nil || !sameMap(l.clock.x.Doc, c.Object) {
		l.clock = stopwatch{}
		l.clock.start(x, l.F(l.Fresh(), session.Query{Object: x}))
	}
	first := l.clock.call
	next := time.NewTimer(time.Until(l.clock.at.Truncate(time.Second).Add(time.Second)))
	defer next.Stop()
	select {
	case <-next.C:
		return l.sameAnswer(c, first, l.F(l.Fresh(), session.Query{Object: x}), "sent a second later")
	case <-l.Ctx.Done():
		return nil
	}
}

// checkAfterGaps checks L3 with the same request after a time gap.
func (l pure) checkAfterGaps(c *Case, x *objects.Object) (found *Finding) {
	if l.Bubble == nil {
		return nil
	}
	outside := l.Ctx
	defer func() { l.Ctx = outside }()
	l.Bubble(func(ctx context.Context) {
		l.Ctx = ctx // contexts derived from it must belong to the bubble
		s := l.Fresh()
		first := l.F(s, session.Query{Object: x})
		for _, gap := range l.Gaps {
			time.Sleep(gap) //nolint:forbidigo // in a bubble of testing/synctest, where it takes no time
			for _, again := range []session.Instances{s, l.Fresh()} {
				if found = l.sameAnswer(c, first, l.F(again, session.Query{Object: x}), "sent again "+gap.String()+" later"); found != nil {
					return
				}
			}
		}
	})
	return found
}

// StartClock records the first call for L3 with NextSecond.
func (t *Trial) StartClock(x *objects.Object, call *session.Outcome) { t.clock.start(x, call) }

// Timed returns the object of the recorded call, or nil.
func (t *Trial) Timed() *objects.Object { return t.clock.x }
