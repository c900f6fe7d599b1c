// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Remove takes the configurations away, the validating one first, and waits until none of them
// is enforced. Webhooks that others put into them stay. What is gone already, or was never
// there, is no error. A program outside of the cluster, called by URL, may remove what those
// inside of it have installed in the same namespace, and they what it has.
//
// It takes them from all replicas at once: call it when the webhook is uninstalled, from a job
// or the last replica, before the servers stop; not whenever a replica ends. Replicas that are
// installing give up; one that starts later installs them again.
func (i *Installer) Remove(ctx context.Context) error {
	remover := *i
	remover.owns = sameNamespace
	took, err := remover.remove(ctx)
	switch {
	case err != nil:
	case took:
		i.logger.Info("the webhooks are taken away, and the API server calls none of them")
	default:
		i.logger.Info("there are no webhooks to take away: the API server has none of this name that were installed like this")
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
		if err := untilUnchanged(func() error { return i.withdraw(ctx, left[0]) }); err != nil {
			return took, err
		}
		if len(left) > 1 { // what verifies would deny what nobody mutates any more
			if err := i.settles(ctx, orderPatience, i.gone()[1:]); err != nil {
				return took, err
			}
		}
		if left, err = i.left(ctx); err != nil {
			return took, err
		}
	}
	return took, i.await(ctx, i.gone())
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
	case len(own) == len(found.entries):
		return i.cluster.remove(ctx, w.sort, found)
	}
	if found, err = i.cutObsolete(ctx, wanted{sort: w.sort, name: w.name}); err != nil {
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
