// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"time"
)

// A validating hook often verifies what a mutating hook of the same program does, and would deny requests without it. So
// the mutating webhooks are stored first and removed last. The two configurations reach an API server at
// different times, so the first is seen there before the second is changed.
//
// The wait in between is bounded: if an API server never shows what it enforces, the second half must still be
// installed.
const (
	orderPatience = 10 * time.Second
	// callPatience covers a certificate source whose CA is older than the configurations, as after an
	// uninstallation. It is not ready during the minute in which a caBundle settles.
	callPatience = 2 * time.Minute
)

// applyInOrder applies the configurations with hooks, and opens or removes those without.
func (i *Installer) applyInOrder(ctx context.Context, p phase, m *memory) error {
	switch p {
	case opening:
		return i.open(ctx, m)
	case clearing:
		return i.clear(ctx, m)
	}
	if err := i.one(ctx, i.wanted[0], p, m); err != nil {
		return err // a validating webhook must not fail closed before the mutating ones do
	}
	return i.one(ctx, i.wanted[1], p, m)
}

// one applies a configuration, or opens it if the program has no hooks of its kind.
func (i *Installer) one(ctx context.Context, w wanted, p phase, m *memory) error {
	return i.untilUnchanged(ctx, func() error {
		switch {
		case w.object != nil:
			return i.applyOne(ctx, w, p, m)
		case p == opening:
			return i.openOne(ctx, w, m)
		}
		return nil
	})
}

// open applies both configurations with Ignore for new and unwanted webhooks.
func (i *Installer) open(ctx context.Context, m *memory) error {
	first, second := i.wanted[0], i.wanted[1]
	if second.object == nil { // the validating webhooks are opened before the mutating ones
		first, second = second, first
	}
	if err := i.one(ctx, first, opening, m); err != nil {
		return err
	}
	if first.object != nil && second.object != nil {
		if err := i.mutatingFirst(ctx, m); err != nil {
			return err
		}
	}
	return i.one(ctx, second, opening, m)
}

// clear applies both configurations with their own policies and removes unwanted webhooks, the mutating ones after the
// validating ones.
func (i *Installer) clear(ctx context.Context, m *memory) error {
	first, second := i.wanted[0], i.wanted[1]
	verifying, err := i.find(ctx, second)
	if err != nil {
		return err
	}
	begin := clearing
	if second.object != nil || len(verifying.obsolete(second)) > 0 {
		begin = keeping
	}
	if err := i.one(ctx, first, begin, m); err != nil {
		return err
	}
	if first.object != nil && second.object != nil {
		if err := i.mutatingFirst(ctx, m); err != nil {
			return err
		}
	}
	if err := i.one(ctx, second, clearing, m); err != nil {
		return err
	}
	if _, err := i.retire(ctx, second); err != nil {
		return err
	}
	found, err := i.find(ctx, first)
	if err != nil || len(found.obsolete(first)) == 0 {
		return err
	}
	if second.object != nil {
		if err := i.settles(ctx, orderPatience, i.known(second, applied)); err != nil {
			return err
		}
	}
	if err := i.one(ctx, first, clearing, m); err != nil {
		return err
	}
	_, err = i.retire(ctx, first)
	return err
}

// known asks whether the API server knows a configuration, even if its calls fail.
func (i *Installer) known(w wanted, at stage) []question {
	for _, q := range i.there(at) {
		if q.sort == w.sort {
			q.unserved = true
			return []question{q}
		}
	}
	return nil
}

// mutatingFirst waits until the mutating webhooks are enforced, before the validating ones are stored. In Run their
// calls must also succeed, because the configurations may get their caBundles at different times. In Apply
// they need not, because the server may not run yet.
func (i *Installer) mutatingFirst(ctx context.Context, m *memory) error {
	questions, bound := i.known(i.wanted[0], applied), orderPatience
	if m.beside {
		questions[0].unserved, bound = false, callPatience
	}
	if err := i.settles(ctx, bound, questions); err != nil {
		return err
	}
	// The configuration may have been removed during the wait.
	found, err := i.find(ctx, i.wanted[0])
	if err != nil {
		return err
	}
	return i.missed(ctx, i.wanted[0], found, m)
}

// settles waits a bounded time for the expected answers. It fails only if ctx ends.
func (i *Installer) settles(ctx context.Context, bound time.Duration, questions []question) error {
	if deadline, ends := ctx.Deadline(); ends { // leave time for the other configuration
		bound = min(bound, time.Until(deadline)/2)
	}
	within, cancel := bounded(ctx, max(bound, 1))
	defer cancel()
	err := i.await(within, questions)
	if err == nil || ctx.Err() != nil {
		return err
	}
	i.logger.Info("going on without knowing that the API server knows", "because", err.Error())
	return nil
}
