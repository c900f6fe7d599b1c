// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Apply stores the configurations by server-side apply, with the field manager
// "admitkit-install". What other managers set in them stays. Webhooks that were applied before
// and are no longer among the hooks are removed after the others are stored. Without
// FailOpenFirst every webhook has the failurePolicy of its registration; with it, see there.
//
// It neither needs a running server nor waits for one, and returns as soon as the API server
// has the configurations: see [Installer.Wait]. An error names the object, and what to do.
func (i *Installer) Apply(ctx context.Context) error {
	return i.apply(ctx, &memory{})
}

func (i *Installer) apply(ctx context.Context, m *memory) error {
	if i.o.FailOpenFirst {
		return i.applyAll(ctx, opening, m)
	}
	return i.applyAll(ctx, clearing, m)
}

// applyAll applies the configurations, and takes away those without hooks when the others are
// there, unless one of them is newer or somebody else's.
func (i *Installer) applyAll(ctx context.Context, p phase, m *memory) error {
	if err := i.findAll(ctx); err != nil {
		return err
	}
	err := i.each(func(w wanted) error {
		if w.object == nil {
			return nil
		}
		return i.applyOne(ctx, w, p, m)
	})
	if err != nil {
		return err
	}
	return i.each(func(w wanted) error {
		if w.object != nil {
			return nil
		}
		return i.withdraw(ctx, w)
	})
}

// each does something to each configuration, again if that was changed at the same time.
func (i *Installer) each(change func(wanted) error) error {
	var errs []error
	for _, w := range i.wanted {
		errs = append(errs, untilUnchanged(func() error { return change(w) }))
	}
	return errors.Join(errs...)
}

// attempts is how often a change is tried again because somebody else, such as another replica
// or who injects caBundles, changed the object at the same time.
const attempts = 20

func untilUnchanged(change func() error) error {
	var err error
	for range attempts {
		if err = change(); !errors.Is(err, errChanged) {
			return err
		}
	}
	return err
}

func (i *Installer) applyOne(ctx context.Context, w wanted, p phase, m *memory) error {
	found, err := i.find(ctx, w)
	if err != nil {
		return err
	}
	if err := i.missed(ctx, w, found, m); err != nil {
		return err
	}
	if p == clearing && len(found.obsolete(w)) > 0 {
		if err := i.store(ctx, w, found, p, m); err != nil {
			return err
		}
		if found, err = i.cutObsolete(ctx, w); err != nil {
			return err
		}
	}
	// What is stored is what was found with this applied to it, or nothing is.
	if untrusted := found.untrusted(w); i.o.FailOpenFirst && p == closing && len(untrusted) > 0 {
		return fmt.Errorf("%s %s: %w: %s", kindOf[w.sort], w.name, errUntrusted, strings.Join(untrusted, ", "))
	}
	return i.store(ctx, w, found, p, m)
}

var errUntrusted = errors.New("webhooks do not have the caBundle of the marker yet, so calls to them would fail")

func (i *Installer) store(ctx context.Context, w wanted, found live, p phase, m *memory) error {
	err := i.cluster.apply(ctx, w.sort, w.at(found, p), i.o.Force)
	if err == nil {
		m.saw(w)
	}
	return err
}

// cutObsolete takes away our webhooks that are not wanted any more, and returns what is left. An
// apply without them could not: of a webhook of which another manager holds a field, the
// caBundle, it would leave that field alone behind.
func (i *Installer) cutObsolete(ctx context.Context, w wanted) (live, error) {
	found, err := i.find(ctx, w)
	if err != nil {
		return found, err
	}
	indexes := found.obsolete(w)
	if len(indexes) == 0 {
		return found, nil
	}
	if err := i.cluster.cut(ctx, w.sort, found, indexes); err != nil {
		return found, err
	}
	return i.find(ctx, w)
}

// find returns what the cluster has, unless it is newer or somebody else's.
func (i *Installer) find(ctx context.Context, w wanted) (live, error) {
	object, err := i.cluster.read(ctx, w.sort)
	if err != nil {
		return live{}, err
	}
	found := readLive(object)
	switch own := i.o.owner(); {
	case found.owner != "" && !sameOwner(found.owner, own) && !i.o.Force:
		return live{}, fmt.Errorf("%s %s was installed by %s, and this is %s: choose another Name of the configuration options, or set Force if the one replaces the other",
			kindOf[w.sort], w.name, found.owner, own)
	case i.o.Revision > 0 && found.revision > i.o.Revision:
		return live{}, fmt.Errorf("%s %s has revision %d, this is %d: %w", kindOf[w.sort], w.name, found.revision, i.o.Revision, ErrSuperseded)
	}
	return found, nil
}

func (i *Installer) findAll(ctx context.Context) error {
	for _, w := range i.wanted {
		if _, err := i.find(ctx, w); err != nil {
			return err
		}
	}
	return nil
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

// Remove takes the configurations away, and waits until none of them is enforced. Webhooks that
// others put into them stay. What is gone already, or was never there, is no error.
//
// It takes them from all replicas at once: call it when the webhook is uninstalled, from a job
// or the last replica, before the servers stop; not whenever a replica ends. Replicas that are
// installing give up; one that starts later installs them again.
func (i *Installer) Remove(ctx context.Context) error {
	if err := i.findAll(ctx); err != nil {
		return err
	}
	for left := true; left; { // a replica that saw the one and not the other gone brings it back, once
		if err := i.each(func(w wanted) error { return i.withdraw(ctx, w) }); err != nil {
			return err
		}
		left = false
		for _, w := range i.wanted {
			found, err := i.find(ctx, w)
			if err != nil {
				return err
			}
			left = left || len(found.obsolete(wanted{})) > 0
		}
	}
	return i.await(ctx, i.gone())
}
