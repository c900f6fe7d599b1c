// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
)

// Remove deletes the configurations, the validating one first, and waits until neither is enforced. If a configuration
// has webhooks of other managers, or finalizers delay its deletion, Remove only removes this installation's webhooks
// from it. A missing configuration is not an error. If the namespace is missing, Remove deletes the configurations, but
// cannot check that they are no longer enforced. A program that the API server calls by URL can also remove the
// configurations of a program with a Service, and the other way round, if both have the same namespace.
//
// Remove affects all replicas at once. Call it when the webhook is uninstalled, from a job or the last replica, before
// the servers stop; do not call it whenever a replica ends. Replicas that are installing give up. A replica that
// starts later installs the webhooks again.
func (i *Installer) Remove(ctx context.Context) error {
	a := i.applier(false)
	a.stored.takesNamespace = true
	took, err := a.remove(ctx)
	var namespace error
	if err == nil {
		err = a.checker.await(ctx, a.checker.gone())
		if namespace = namespaceProblem(i.o.namespace(), err); namespace != nil {
			err = nil // nothing is left to do
		}
	}
	switch {
	case err != nil:
	case !took:
		i.logger.Info("there are no webhooks to remove: the API server has none with this name that this installation applied")
	case namespace != nil:
		i.logger.Info("the webhooks are removed; it is unknown whether the API server still calls them for a moment", "because", namespace.Error())
	default:
		i.logger.Info("the webhooks are removed, and the API server calls none of them")
	}
	if err == nil {
		i.status.enters(Removed)
	}
	return i.status.ended(err)
}

// remove removes all webhooks of this installation. took reports whether there were any.
func (a *applier) remove(ctx context.Context) (took bool, err error) {
	left, err := a.stored.left(ctx)
	if err != nil {
		return false, err
	}
	for len(left) > 0 { // a replica that saw only one configuration deleted may apply it once more
		took = true
		if err := a.takeAway(ctx, left[0], len(left) > 1); err != nil {
			return took, err
		}
		if left, err = a.stored.left(ctx); err != nil {
			return took, err
		}
	}
	return took, nil
}

// takeAway removes our webhooks from the configuration w, or deletes it. another means that the mutating configuration
// still exists. Then takeAway waits until w is no longer enforced: its validating webhooks would deny objects that are
// no longer mutated.
func (a *applier) takeAway(ctx context.Context, w wanted, another bool) error {
	if err := a.stored.untilUnchanged(ctx, func() error { return a.stored.withdraw(ctx, w) }); err != nil {
		return err
	}
	found, err := a.stored.find(ctx, w)
	switch {
	case err != nil:
		return err
	case len(found.obsolete(wanted{})) > 0: // a replica restored it, or finalizers delay its deletion
		if !sleep(ctx, a.o.Interval) {
			return fmt.Errorf("%s %s still exists%s: %w", kindOf[w.sort], w.name, found.kept(), context.Cause(ctx))
		}
	case another:
		return a.checker.settles(ctx, orderPatience, a.checker.gone()[1:])
	}
	return nil
}
