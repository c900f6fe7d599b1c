// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Promote gives every webhook the failurePolicy of its registration:
//
//  1. It waits until Deployment and Ready of the options report every replica as ready.
//  2. It applies and waits as [Installer.Apply] and [Installer.Wait] do, so that the API server can reach the webhook.
//  3. It applies the failure policies of the registrations and waits until they are enforced.
//  4. It removes the webhooks that are no longer among the hooks.
//
// A replica's readiness must not depend on Promote. Several replicas may promote at once.
func (i *Installer) Promote(ctx context.Context) error {
	p := i.promoter()
	err := p.stored.remember(ctx)
	if err == nil {
		err = p.promote(ctx, 0)
	}
	return i.status.ended(err)
}

// A promoter does the steps of one call of Run or Promote.
type promoter struct {
	*applier
	rollout *rollout
}

// promote does the steps of Installer.Promote. It waits for the replicas without a time limit. Each wait for the API
// server takes at most patience, unless patience is zero.
func (p *promoter) promote(ctx context.Context, patience time.Duration) error {
	if err := p.rollout.awaitReady(ctx); err != nil {
		return err
	}
	if err := p.apply(ctx); err != nil {
		return err
	}
	if err := p.checker.awaitFor(ctx, patience, applied); err != nil {
		return err
	}
	if err := p.failClosed(ctx, patience); err != nil {
		return err
	}
	p.status.stored(false)
	if err := p.checker.awaitFor(ctx, patience, promoted); err != nil {
		return err
	}
	return p.retireAll(ctx, patience)
}

// failClosed applies the failure policies of the registrations. While a webhook lacks the marker's caBundle, failClosed
// retries, for at most patience.
func (p *promoter) failClosed(ctx context.Context, patience time.Duration) error {
	ctx, cancel := bounded(ctx, patience)
	defer cancel()
	pause, last := p.o.Interval, error(nil)
	for {
		err := p.applyAll(ctx, closing)
		switch {
		case errors.Is(err, errUntrusted):
			last = err
		case err == nil, ctx.Err() == nil, last == nil: // otherwise the error would only report the end of ctx
			return err
		}
		if pause = min(pause*3/2, 20*p.o.Interval); !sleep(ctx, pause) {
			return fmt.Errorf("waiting to apply the failure policies: %w; last seen: %w", context.Cause(ctx), last)
		}
	}
}

// promoter returns a new promoter for one call of Run or Promote.
func (i *Installer) promoter() *promoter {
	return &promoter{applier: i.applier(true), rollout: &rollout{installation: &i.installation}}
}
