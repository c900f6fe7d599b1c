// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An applier changes the configurations during one call of an Installer's method. The order of its changes ensures that
// no request is wrongly denied or passes without review.
type applier struct {
	*installation
	stored    *store
	checker   checker
	serves    bool // a server runs or starts in the same program
	failsOpen bool // the last apply used Ignore in place of Fail
}

// A validating hook often verifies what a mutating hook of the same program does, and would deny requests without it.
// So the mutating webhooks are stored first and removed last. An API server reads the two configurations at different
// times. So the installer waits until it has read the first one before it changes the second one.
//
// The wait in between is bounded: if an API server never shows what it enforces, the second configuration must still be
// applied.
const (
	orderPatience = 10 * time.Second
	// callPatience leaves time for a certificate source whose CA is older than the configurations, as
	// after an uninstallation. Such a source is not ready until the caBundle has settled, which takes
	// a minute.
	callPatience = 2 * time.Minute
)

// applyInOrder applies the configurations that have hooks. Webhooks in a configuration without hooks
// get Ignore or are removed.
func (a *applier) applyInOrder(ctx context.Context, p phase) error {
	switch p {
	case opening:
		return a.failOpen(ctx)
	case clearing:
		return a.clear(ctx)
	}
	if err := a.one(ctx, a.wanted[0], p); err != nil {
		return err // a validating webhook must not fail closed before the mutating ones do
	}
	return a.one(ctx, a.wanted[1], p)
}

// one applies the configuration w, and retries after a conflict. If the program has no hooks of its kind, one sets
// Ignore on the stored webhooks in the phase opening, and does nothing in other phases.
func (a *applier) one(ctx context.Context, w wanted, p phase) error {
	return a.stored.untilUnchanged(ctx, func() error {
		switch {
		case w.object != nil:
			return a.applyOne(ctx, w, p)
		case p == opening:
			return a.openOne(ctx, w)
		}
		return nil
	})
}

// failOpen applies both configurations with Ignore for new and unwanted webhooks.
func (a *applier) failOpen(ctx context.Context) error {
	first, second := a.wanted[0], a.wanted[1]
	if second.object == nil { // the validating webhooks get Ignore before the mutating ones
		first, second = second, first
	}
	if err := a.one(ctx, first, opening); err != nil {
		return err
	}
	if first.object != nil && second.object != nil {
		if err := a.mutatingFirst(ctx); err != nil {
			return err
		}
	}
	return a.one(ctx, second, opening)
}

// clear applies both configurations with the failure policies of their registrations. It then removes the unwanted
// webhooks, the validating ones first.
func (a *applier) clear(ctx context.Context) error {
	first, second := a.wanted[0], a.wanted[1]
	verifying, err := a.stored.find(ctx, second)
	if err != nil {
		return err
	}
	begin := clearing
	if second.object != nil || len(verifying.obsolete(second)) > 0 {
		begin = keeping
	}
	if err := a.one(ctx, first, begin); err != nil {
		return err
	}
	if first.object != nil && second.object != nil {
		if err := a.mutatingFirst(ctx); err != nil {
			return err
		}
	}
	if err := a.one(ctx, second, clearing); err != nil {
		return err
	}
	if _, err := a.retire(ctx, second); err != nil {
		return err
	}
	found, err := a.stored.find(ctx, first)
	if err != nil || len(found.obsolete(first)) == 0 {
		return err
	}
	if second.object != nil {
		if err := a.checker.settles(ctx, orderPatience, a.checker.known(second, applied)); err != nil {
			return err
		}
	}
	if err := a.one(ctx, first, clearing); err != nil {
		return err
	}
	_, err = a.retire(ctx, first)
	return err
}

// mutatingFirst waits until the mutating webhooks are enforced, before the validating ones are stored. In Run and
// Promote their calls must also succeed, because the configurations may get their caBundles at different times. In
// Apply they need not, because the server may not run yet.
func (a *applier) mutatingFirst(ctx context.Context) error {
	questions, bound := a.checker.known(a.wanted[0], applied), orderPatience
	if a.serves {
		questions[0].allowsUnanswered, bound = false, callPatience
	}
	if err := a.checker.settles(ctx, bound, questions); err != nil {
		return err
	}
	// The configuration may have been removed during the wait.
	found, err := a.stored.find(ctx, a.wanted[0])
	if err != nil {
		return err
	}
	return a.stored.missed(ctx, a.wanted[0], found)
}

// applyAll applies the configurations. If a stored one is newer or belongs to another installation, it changes nothing
// and returns an error. It also handles a stored configuration of a kind without hooks: in the phase opening its
// webhooks get Ignore, and in the phase clearing it is removed.
func (a *applier) applyAll(ctx context.Context, p phase) error {
	if err := a.findAll(ctx); err != nil {
		return err
	}
	a.failsOpen = false
	return a.applyInOrder(ctx, p)
}

func (a *applier) applyOne(ctx context.Context, w wanted, p phase) error {
	found, err := a.stored.find(ctx, w)
	if err != nil {
		return err
	}
	if err := a.stored.missed(ctx, w, found); err != nil {
		return err
	}
	if p == clearing && len(found.obsolete(w)) > 0 {
		if err := a.store(ctx, w, found, p); err != nil {
			return err
		}
		if found, err = a.stored.cutObsolete(ctx, w); err != nil {
			return err
		}
	}
	// The resourceVersion makes the apply fail if the stored object has changed.
	if untrusted := found.untrusted(w); a.o.FailOpenFirst && p == closing && len(untrusted) > 0 {
		return fmt.Errorf("%s %s: %w: %s", kindOf[w.sort], w.name, errUntrusted, strings.Join(untrusted, ", "))
	}
	return a.store(ctx, w, found, p)
}

var errUntrusted = errors.New("webhooks do not have the caBundle of the marker yet, so calls to them would fail")

// findAll returns an error if a stored configuration is newer or belongs to another installation. A missing
// configuration is not an error. If a wanted webhook is not stored yet, findAll begins the phase Installing.
func (a *applier) findAll(ctx context.Context) error {
	complete := true
	for _, w := range a.wanted {
		found, err := a.stored.find(ctx, w)
		if err != nil {
			return err
		}
		complete = complete && (w.object == nil || !slices.ContainsFunc(webhooks(w.object), func(entry map[string]any) bool { return !found.has(nameOf(entry)) }))
	}
	if !complete {
		a.status.enters(Installing)
	}
	return nil
}

// store applies a configuration based on the stored one.
func (a *applier) store(ctx context.Context, w wanted, found live, p phase) error {
	err := a.cluster.apply(ctx, w.sort, w.at(found, p), a.o.Force)
	if err == nil {
		a.stored.saw(w)
		a.failsOpen = a.failsOpen || p == opening && w.opens(found)
	}
	return err
}

// applier returns a new applier for one call. serves means that a server runs or starts in the same program.
func (i *Installer) applier(serves bool) *applier {
	shared := &i.installation
	return &applier{installation: shared, stored: &store{installation: shared}, checker: checker{shared}, serves: serves}
}

// If the program has no hooks of a kind any more, every webhook of that configuration is unwanted. Like other unwanted
// webhooks, they are removed only after the new ones are enforced.

// retire removes our webhooks from a configuration for which the program has no hooks. It reports whether there were
// any. If it is the validating configuration, retire then waits for a limited time until it is no longer enforced. Then
// the mutating one can be removed.
func (a *applier) retire(ctx context.Context, w wanted) (bool, error) {
	if w.object != nil {
		return false, nil
	}
	found, err := a.stored.find(ctx, w)
	if err != nil || len(found.obsolete(w)) == 0 {
		return false, err
	}
	if err := a.stored.untilUnchanged(ctx, func() error { return a.stored.withdraw(ctx, w) }); err != nil {
		return false, err
	}
	if w.sort == mutating {
		return true, nil
	}
	return true, a.checker.settles(ctx, orderPatience, a.checker.gone()[1:])
}

// retireAll removes the unwanted webhooks, the validating ones first. The wanted ones must be enforced already.
func (a *applier) retireAll(ctx context.Context, patience time.Duration) error {
	var errs []error
	var gone []question
	for n, w := range slices.Backward(a.wanted) {
		if w.object != nil {
			errs = append(errs, a.stored.untilUnchanged(ctx, func() error {
				_, err := a.stored.cutObsolete(ctx, w)
				return err
			}))
			continue
		}
		took, err := a.retire(ctx, w)
		if errs = append(errs, err); took {
			q := a.checker.gone()[n]
			q.allowsUnclear = true
			gone = append(gone, q)
		}
	}
	if err := errors.Join(errs...); err != nil || len(gone) == 0 {
		return err
	}
	ctx, cancel := bounded(ctx, patience)
	defer cancel()
	return a.checker.await(ctx, gone)
}

// openOne sets Ignore on our webhooks in a configuration without hooks, because some replicas no longer serve
// them.
func (a *applier) openOne(ctx context.Context, w wanted) error {
	found, err := a.stored.find(ctx, w)
	if err != nil || len(found.obsolete(w)) == 0 {
		return err
	}
	a.failsOpen = true
	err = a.cluster.apply(ctx, w.sort, w.opened(found, a.o), a.o.Force)
	if missingRight(err) != "" { // RBAC grants it only for the kinds of the hooks
		a.logger.Error(err, "webhooks that this program no longer has keep their failurePolicy until they are removed, so calls to them fail if no replica of the older program answers")
		return nil
	}
	return err
}
