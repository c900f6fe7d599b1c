// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"time"
)

// A validating hook often verifies what a mutating one of the same program does: without the
// latter it denies. So what mutates comes first, and what validates goes first. Each kind of
// configuration reaches an API server on its own, so the one is seen there before the other is
// changed.

// The wait between the two has a bound: whatever keeps an API server from showing what it enforces
// must not keep half of an installation away for good.
const (
	orderPatience = 10 * time.Second
	// callPatience has room for a source of certificates whose CA is older than the configurations,
	// as after an uninstallation: it is not ready for the minute in which a caBundle settles.
	callPatience = 2 * time.Minute
)

// applyInOrder applies the configurations that have hooks, and sees to those without.
func (i *Installer) applyInOrder(ctx context.Context, p phase, m *memory) error {
	switch p {
	case opening:
		return i.open(ctx, m)
	case clearing:
		return i.clear(ctx, m)
	}
	if err := i.one(ctx, i.wanted[0], p, m); err != nil {
		return err // nothing is verified closed that is mutated open
	}
	return i.one(ctx, i.wanted[1], p, m)
}

// one applies a configuration, or opens it if it has no hooks any more.
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

// open applies both with Ignore for what is new or unwanted.
func (i *Installer) open(ctx context.Context, m *memory) error {
	first, second := i.wanted[0], i.wanted[1]
	if second.object == nil { // what verifies is opened before what it verifies
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

// clear applies both as they are, and takes away what is unwanted: of what mutates when nobody
// verifies it any more.
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

// known asks whether the API server knows a configuration, and be it in vain that it calls.
func (i *Installer) known(w wanted, at stage) []question {
	for _, q := range i.there(at) {
		if q.sort == w.sort {
			q.unserved = true
			return []question{q}
		}
	}
	return nil
}

// mutatingFirst waits until the mutating webhooks are enforced, before the validating ones are
// stored. In Run they have to be callable, too, since they may get their caBundles one after the
// other; but Apply may be what comes before there is a server.
func (i *Installer) mutatingFirst(ctx context.Context, m *memory) error {
	questions, bound := i.known(i.wanted[0], applied), orderPatience
	if m.beside {
		questions[0].unserved, bound = false, callPatience
	}
	if err := i.settles(ctx, bound, questions); err != nil {
		return err
	}
	// Was it removed while this waited?
	found, err := i.find(ctx, i.wanted[0])
	if err != nil {
		return err
	}
	return i.missed(ctx, i.wanted[0], found, m)
}

// settles waits for answers, for a while. The error is that of the end of ctx.
func (i *Installer) settles(ctx context.Context, bound time.Duration, questions []question) error {
	if deadline, ends := ctx.Deadline(); ends { // leave time for the other
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
