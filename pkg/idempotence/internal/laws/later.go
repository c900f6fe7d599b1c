// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"context"
	"time"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// A timedCall is a recorded call: its time, its object and its result.
type timedCall struct {
	at   time.Time
	x    *objects.Object
	call *session.Outcome
}

func (w *timedCall) record(x *objects.Object, call *session.Outcome) {
	if w.x == nil {
		*w = timedCall{time.Now(), x, call}
	}
}

// checkInNextSecond checks L3 by repeating a call in the next second of the clock.
func (l pure) checkInNextSecond(c *Case, x *objects.Object) *Finding {
	first := l.timed
	if first.x == nil || !sameMap(first.x.Doc, c.Object) || l.Kind.Old != nil || l.User != nil { // another request was recorded
		first = timedCall{time.Now(), x, l.F(l.Fresh(), session.Query{Object: x})}
	}
	next := time.NewTimer(time.Until(first.at.Truncate(time.Second).Add(time.Second)))
	defer next.Stop()
	select {
	case <-next.C:
		return l.sameAnswer(c, first.call, l.F(l.Fresh(), session.Query{Object: x}), "sent a second later")
	case <-l.Ctx.Done():
		return nil
	}
}

// checkAfterGaps checks L3 by repeating a request after each of Options.Gaps, with a fake clock.
func (l pure) checkAfterGaps(c *Case, x *objects.Object) (found *Finding) {
	if l.Bubble == nil {
		return nil
	}
	outside := l.Ctx
	defer func() { l.Ctx = outside }()
	defer l.Connection.Apart()()
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

// StartClock records a call, unless one is already recorded. The variant NextSecond of L3 compares a later call with
// it.
func (t *Trial) StartClock(x *objects.Object, call *session.Outcome) { t.timed.record(x, call) }

// Timed returns the object of the recorded call, or nil.
func (t *Trial) Timed() *objects.Object { return t.timed.x }
