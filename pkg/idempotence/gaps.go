// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// checkGaps returns an error if the options do not allow time gaps.
func (o *options) checkGaps(subject Subject) error {
	if len(o.gaps) == 0 {
		o.bubble = nil
		return nil
	}
	if o.server != nil { // its connection is outside of the bubble, and may not be used inside
		return errors.New("TimeGaps and APIServer do not go together: use a test for each")
	}
	if o.bubble == nil {
		return errors.New("TimeGaps needs idempotence.Check with a *testing.T")
	}
	for _, w := range subject.webhooks {
		if !w.inProcess {
			return fmt.Errorf("TimeGaps: webhook %q is not in this process, and its clock goes on as ever", w.Name)
		}
	}
	return nil
}

// anotherTime is a variant of L3: the same request later.
const anotherTime Variant = "another time"

// checkLater checks L3 with the same request after a time gap.
func (r *run) checkLater(c *Case, x *objects.Object) (found *Violation) {
	if r.opts.bubble == nil {
		return nil
	}
	outside := r.ctx
	defer func() { r.ctx = outside }()
	r.opts.bubble(func(ctx context.Context) {
		r.ctx = ctx // a context of the bubble, as whoever derives one from it needs
		s := r.fresh()
		first := r.f(s, query{object: x})
		for _, gap := range r.opts.gaps {
			time.Sleep(gap) //nolint:forbidigo // in a bubble of testing/synctest, where it takes no time
			for _, again := range []servers{s, r.fresh()} {
				if found = r.sameAnswer(c, first, r.f(again, query{object: x}), "sent again "+gap.String()+" later"); found != nil {
					return
				}
			}
		}
	})
	return found
}

// progressEvery is the number of objects between two progress lines.
const progressEvery = 100

// tell logs the progress of the run.
func (r *run) tell(i int) {
	if done := i + 1; done%progressEvery == 0 && r.opts.progress != nil {
		r.opts.progress(fmt.Sprintf("%s: %d of %d objects, %s, %s", kindName(r.kind.GroupVersionKind), done, r.opts.objects,
			textutil.Count(r.checks, "check"), textutil.Count(r.calls, "call")))
	}
}
