// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Remove deletes the configurations, the validating one first, and waits until none is enforced. Webhooks of other managers
// stay. A configuration with finalizers stays without our webhooks. A configuration that does not exist is no
// error. Nor is a missing namespace, without which no marker request can be sent. A program outside of the
// cluster, called by URL, may remove what a program in the same namespace has installed, and the reverse.
//
// Remove affects all replicas at once. Call it when the webhook is uninstalled, from a job or the last replica, before
// the servers stop; do not call it whenever a replica ends. Replicas that are installing give up. A replica that
// starts later installs the webhooks again.
func (i *Installer) Remove(ctx context.Context) error {
	remover := *i
	remover.removes = true
	took, err := remover.remove(ctx)
	if err == nil {
		err = i.await(ctx, i.gone())
	}
	namespace := namespaceProblem(i.o.namespace(), err)
	if namespace != nil {
		err = nil // nothing is left to do
	}
	switch {
	case err != nil:
	case !took:
		i.logger.Info("there are no webhooks to take away: the API server has none of this name that were installed like this")
	case namespace != nil:
		i.logger.Info("the webhooks are taken away; whether the API server calls one of them for a moment more cannot be asked", "because", namespace.Error())
	default:
		i.logger.Info("the webhooks are taken away, and the API server calls none of them")
	}
	if err == nil {
		i.status.enters(Removed)
	}
	return i.status.told(err)
}

// remove reports whether there was a configuration.
func (i *Installer) remove(ctx context.Context) (took bool, err error) {
	left, err := i.left(ctx)
	if err != nil {
		return false, err
	}
	for len(left) > 0 { // a replica that saw only one of them deleted may restore it once
		took = true
		if err := i.takeAway(ctx, left[0], len(left) > 1); err != nil {
			return took, err
		}
		if left, err = i.left(ctx); err != nil {
			return took, err
		}
	}
	return took, nil
}

// takeAway withdraws one configuration. If there is another, it waits until the first is no longer enforced, because the
// validating webhooks would deny objects that are no longer mutated.
func (i *Installer) takeAway(ctx context.Context, w wanted, another bool) error {
	if err := i.untilUnchanged(ctx, func() error { return i.withdraw(ctx, w) }); err != nil {
		return err
	}
	found, err := i.find(ctx, w)
	switch {
	case err != nil:
		return err
	case len(found.obsolete(wanted{})) > 0: // a replica restored it, or finalizers delay its deletion
		if !sleep(ctx, i.o.Interval) {
			return fmt.Errorf("%s %s is there still%s: %w", kindOf[w.sort], w.name, found.kept(), context.Cause(ctx))
		}
	case another:
		return i.settles(ctx, orderPatience, i.gone()[1:])
	}
	return nil
}

// left returns the configurations with webhooks of ours, in the order of their removal.
func (i *Installer) left(ctx context.Context) ([]wanted, error) {
	var list []wanted
	for _, w := range i.wanted {
		found, err := i.find(ctx, w)
		if err != nil {
			return nil, err
		}
		if len(found.obsolete(wanted{})) > 0 {
			list = append(list, w)
		}
	}
	slices.Reverse(list)
	return list, nil
}

// withdraw removes our webhooks from a configuration, and deletes it if it has no others.
func (i *Installer) withdraw(ctx context.Context, w wanted) error {
	found, err := i.find(ctx, w)
	if err != nil {
		return err
	}
	own := found.obsolete(wanted{})
	switch {
	case len(own) == 0:
		return nil
	case found.deleting: // stored and enforced until its finalizers are gone
		i.logger.Info("deleted, but kept: its webhooks are taken out", "kind", kindOf[w.sort], "finalizers", found.finalizers)
	case len(own) == len(found.entries):
		return i.cluster.remove(ctx, w.sort, found)
	}
	kept := found.kept()
	if found, err = i.cutObsolete(ctx, wanted{sort: w.sort, name: w.name}); err != nil {
		if kept != "" {
			err = fmt.Errorf("%s %s is there still%s: %w", kindOf[w.sort], w.name, kept, err)
		}
		return err
	}
	return i.cluster.apply(ctx, w.sort, nothing(w, found), i.o.Force) // releases annotations and labels
}

// nothing returns an apply configuration without any of our fields, which releases them.
func nothing(w wanted, found live) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(configurations[w.sort].GroupVersion().String())
	object.SetKind(kindOf[w.sort])
	object.SetName(w.name)
	object.SetResourceVersion(found.resourceVersion)
	object.SetUID(found.uid)
	return object
}
