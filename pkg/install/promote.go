// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// Promote gives every webhook the failurePolicy of its registration:
//
//  1. It waits until Deployment and Ready of the options report every replica as ready.
//  2. It applies and waits as [Installer.Apply] and [Installer.Wait] do, so that the API server can reach the webhook.
//  3. It applies the real policies and waits until they are enforced.
//  4. It removes the webhooks that are no longer among the hooks.
//
// A replica's readiness must not depend on Promote. Several replicas may promote at once.
func (i *Installer) Promote(ctx context.Context) error {
	m := &memory{beside: true}
	err := i.remember(ctx, m)
	if err == nil {
		err = i.promote(ctx, 0, m)
	}
	return i.status.told(err)
}

// promote waits for readiness without a limit, and for the API server at most patience, if that is not zero.
func (i *Installer) promote(ctx context.Context, patience time.Duration, m *memory) error {
	if err := i.awaitReady(ctx, m); err != nil {
		return err
	}
	if err := i.apply(ctx, m); err != nil {
		return err
	}
	if err := i.awaitFor(ctx, patience, applied); err != nil {
		return err
	}
	if err := i.failClosed(ctx, patience, m); err != nil {
		return err
	}
	i.status.stored(false)
	if err := i.awaitFor(ctx, patience, promoted); err != nil {
		return err
	}
	return i.retireAll(ctx, patience)
}

// failClosed applies the real policies as soon as each webhook has the caBundle that its calls need.
func (i *Installer) failClosed(ctx context.Context, patience time.Duration, m *memory) error {
	ctx, cancel := bounded(ctx, patience)
	defer cancel()
	pause, last := i.o.Interval, error(nil)
	for {
		err := i.applyAll(ctx, closing, m)
		switch {
		case errors.Is(err, errUntrusted):
			last = err
		case err == nil, ctx.Err() == nil, last == nil: // otherwise the error would only report the end of ctx
			return err
		}
		if pause = min(pause*3/2, 20*i.o.Interval); !sleep(ctx, pause) {
			return fmt.Errorf("waiting to apply the failure policies: %w; last seen: %w", context.Cause(ctx), last)
		}
	}
}

var errImpatient = errors.New("it takes too long")

// bounded returns a context that ends after patience, or ctx if patience is zero.
func bounded(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if patience == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, patience, errImpatient)
}

func (i *Installer) awaitFor(ctx context.Context, patience time.Duration, at stage) error {
	ctx, cancel := bounded(ctx, patience)
	defer cancel()
	return i.await(ctx, i.there(at))
}

// awaitReady polls until every replica is ready.
func (i *Installer) awaitReady(ctx context.Context, m *memory) error {
	pause, last := i.o.Interval, ""
	began := time.Now()
	reminded := began
	for {
		err := i.ready(ctx, m)
		switch {
		case err == nil:
			i.status.waits(nil)
			return nil
		case missingRight(err) != "", errors.Is(err, ErrSuperseded):
			return err
		case ctx.Err() == nil && err.Error() != last:
			last = err.Error()
			i.logger.Info("waiting", "for", "every replica to be ready", "seen", last)
		}
		if ctx.Err() == nil {
			i.status.waits(err)
		}
		if time.Since(reminded) >= reminder {
			reminded = time.Now()
			i.logger.Error(err, i.unready(), "waiting", time.Since(began).Round(time.Second).String(), "phase", i.Status().Phase)
		}
		if pause = min(pause*3/2, 20*i.o.Interval); !sleep(ctx, pause) {
			return fmt.Errorf("waiting until every replica is ready: %w; last seen: %s", context.Cause(ctx), last)
		}
	}
}

// reminder is the interval at which a long wait for readiness is logged.
const reminder = 5 * time.Minute

// unready explains the error of a wait for readiness.
func (i *Installer) unready() string {
	if i.o.FailOpenFirst {
		return "not every replica is ready yet: until then the failures of webhooks that are new are ignored, and so requests pass unseen"
	}
	return "not every replica is ready yet"
}

func (i *Installer) ready(ctx context.Context, m *memory) error {
	if i.o.Deployment != "" {
		d, template, err := i.readDeployment(ctx)
		if err != nil {
			return err
		}
		differs := m.differs(template)
		if err := rolledOut(d); err != nil {
			return fmt.Errorf("Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		if differs {
			return i.replaced()
		}
	}
	if i.o.Ready != nil {
		return i.o.Ready(ctx)
	}
	return nil
}

// rolledOut returns nil if all replicas of a Deployment have its newest template and are ready, and otherwise the
// reason.
func rolledOut(d *appsv1.Deployment) error {
	var want int32 = 1
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return errors.New("its newest change was not taken up yet")
	case want == 0:
		return errors.New("it is scaled to no replicas")
	case s.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d replicas are of its newest template", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Errorf("%d replicas of an older template are left", s.Replicas-s.UpdatedReplicas)
	case s.ReadyReplicas < want:
		return fmt.Errorf("%d of %d replicas are ready", s.ReadyReplicas, want)
	}
	return nil
}
