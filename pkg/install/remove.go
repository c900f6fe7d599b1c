// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Remove takes the configurations away, the validating one first, and waits until none of them
// is enforced. Webhooks that others put into them stay; so does a configuration with finalizers,
// without webhooks. What is gone already, or was never there, is no error; nor is a namespace that
// is gone, without which nobody can be asked what is enforced. A program outside of the cluster, called by URL, may remove what those
// inside of it have installed in the same namespace, and they what it has.
//
// It takes them from all replicas at once: call it when the webhook is uninstalled, from a job
// or the last replica, before the servers stop; not whenever a replica ends. Replicas that are
// installing give up; one that starts later installs them again.
func (i *Installer) Remove(ctx context.Context) error {
	remover := *i
	remover.removes = true
	took, err := remover.remove(ctx)
	if err == nil {
		err = i.await(ctx, i.gone())
	}
	namespace := namespaceProblem(i.o.namespace(), err)
	if namespace != nil {
		err = nil // there is nothing left that could be done
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

// remove returns whether there was something.
func (i *Installer) remove(ctx context.Context) (took bool, err error) {
	left, err := i.left(ctx)
	if err != nil {
		return false, err
	}
	for len(left) > 0 { // a replica that saw the one and not the other gone brings it back, once
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

// takeAway withdraws one configuration, and waits until it is not enforced if there is another:
// what verifies would deny what nobody mutates any more.
func (i *Installer) takeAway(ctx context.Context, w wanted, another bool) error {
	if err := i.untilUnchanged(ctx, func() error { return i.withdraw(ctx, w) }); err != nil {
		return err
	}
	found, err := i.find(ctx, w)
	switch {
	case err != nil:
		return err
	case len(found.obsolete(wanted{})) > 0: // it was brought back, or is deleted later
		if !sleep(ctx, i.o.Interval) {
			return fmt.Errorf("%s %s is there still%s: %w", kindOf[w.sort], w.name, found.kept(), context.Cause(ctx))
		}
	case another:
		return i.settles(ctx, orderPatience, i.gone()[1:])
	}
	return nil
}

// left returns the configurations that have webhooks of ours, in the order in which they go.
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

// withdraw takes our webhooks out of a configuration, and deletes it if there are no others.
func (i *Installer) withdraw(ctx context.Context, w wanted) error {
	found, err := i.find(ctx, w)
	if err != nil {
		return err
	}
	own := found.obsolete(wanted{})
	switch {
	case len(own) == 0:
		return nil
	case found.deleting: // it is stored, and enforced, until its finalizers are gone
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
	return i.cluster.apply(ctx, w.sort, nothing(w, found), i.o.Force) // annotations and labels
}

// nothing applies none of the fields that were ours.
func nothing(w wanted, found live) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(configurations[w.sort].GroupVersion().String())
	object.SetKind(kindOf[w.sort])
	object.SetName(w.name)
	object.SetResourceVersion(found.resourceVersion)
	object.SetUID(found.uid)
	return object
}
