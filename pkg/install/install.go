// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An Installer applies the configurations of hooks to a cluster. Make one with [New]. Its
// methods are safe for concurrent use, and so are the installers of several replicas.
type Installer struct {
	o       Options
	hooks   []*webhook.Hook
	wanted  []wanted // one for each sort
	cluster cluster
	logger  logr.Logger
}

// New returns an installer of the hooks. It does not talk to the API server. The error lists
// everything that is wrong with the options and the hooks.
func New(o Options, hooks ...*webhook.Hook) (*Installer, error) {
	if o.Config == nil {
		return nil, errors.New("set Config of the options of the installation")
	}
	i, err := newInstaller(o, hooks)
	if err != nil {
		return nil, err
	}
	if i.cluster, err = newKubeCluster(o.Config, o.namespace(), o.Configuration.Name); err != nil {
		return nil, err
	}
	return i, nil
}

func newInstaller(o Options, hooks []*webhook.Hook) (*Installer, error) {
	err := o.validate()
	own, configurationErr := newWanted(o, hooks)
	if err = errors.Join(err, configurationErr); err != nil {
		return nil, err
	}
	// A denial ends the mutating webhooks: as the first, the marker's spares the others.
	hooks = append(markerHooks(o, sortsOf(own)), hooks...)
	all, err := newWanted(o, hooks)
	if err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger.IsZero() {
		logger = logr.FromSlogHandler(slog.Default().Handler())
	}
	return &Installer{o: o.completed(), hooks: hooks, wanted: all, logger: logger.WithValues("configuration", o.Configuration.Name)}, nil
}

func sortsOf(all []wanted) []sort {
	var list []sort
	for _, w := range all {
		if w.object != nil {
			list = append(list, w.sort)
		}
	}
	return list
}

// Hooks returns what a server is to serve: the hooks, and the marker hooks by which
// [Installer.Wait] finds out what the API server enforces.
func (i *Installer) Hooks() []*webhook.Hook { return slices.Clone(i.hooks) }

// Targets returns the configurations as those whose caBundle a self-managed source of package
// certs keeps: of the markers, and of the webhooks at the same server. It leaves out those with
// a Service, URL or CABundle of their own, and those that others put there.
func (i *Installer) Targets() []certs.Target {
	var targets []certs.Target
	for _, w := range i.wanted {
		if w.object != nil {
			targets = append(targets, certs.Target{
				Kind: certs.TargetKind(kindOf[w.sort]), Name: w.name, Webhooks: w.besideMarker(),
			})
		}
	}
	return targets
}

// Apply stores the configurations by server-side apply, with the field manager
// "admitkit-install". What other managers set in them stays, but for webhooks that were applied
// before and are no longer among the hooks: those are removed. Without FailOpenFirst every
// webhook has the failurePolicy of its registration; with it, see there.
//
// It neither needs a running server nor waits for one, and returns as soon as the API server
// has the configurations: see [Installer.Wait]. An error names the object, and what to do.
func (i *Installer) Apply(ctx context.Context) error {
	return i.applyAll(ctx, i.o.FailOpenFirst)
}

func (i *Installer) applyAll(ctx context.Context, open bool) error {
	return i.changeAll(ctx, func(w wanted) error { return i.applyOne(ctx, w, open) })
}

// changeAll does something to each configuration, unless one of them is newer.
func (i *Installer) changeAll(ctx context.Context, change func(wanted) error) error {
	for _, w := range i.wanted {
		if _, err := i.find(ctx, w); err != nil {
			return err
		}
	}
	var errs []error
	for _, w := range i.wanted {
		errs = append(errs, i.untilUnchanged(func() error { return change(w) }))
	}
	return errors.Join(errs...)
}

// attempts is how often a change is tried again because somebody else, such as another replica
// or who injects caBundles, changed the object at the same time.
const attempts = 20

func (i *Installer) untilUnchanged(change func() error) error {
	var err error
	for range attempts {
		if err = change(); !errors.Is(err, errChanged) {
			return err
		}
	}
	return err
}

func (i *Installer) applyOne(ctx context.Context, w wanted, open bool) error {
	found, err := i.find(ctx, w)
	switch {
	case err != nil:
		return err
	case w.object == nil:
		return i.withdraw(ctx, w.sort, found)
	}
	// An apply cannot remove a webhook of which another manager holds a field, the caBundle: it
	// would leave that field alone behind.
	if indexes := found.obsolete(w); len(indexes) > 0 {
		if err := i.cluster.cut(ctx, w.sort, found, indexes); err != nil {
			return err
		}
		if found, err = i.find(ctx, w); err != nil {
			return err
		}
	}
	// What is stored is what was found with this applied to it, or nothing is.
	if untrusted := found.untrusted(w); i.o.FailOpenFirst && !open && len(untrusted) > 0 {
		return fmt.Errorf("%s %s: %w: %s", kindOf[w.sort], w.name, errUntrusted, strings.Join(untrusted, ", "))
	}
	return i.cluster.apply(ctx, w.sort, w.at(found, open), i.o.Force)
}

var errUntrusted = errors.New("webhooks do not have the caBundle of the marker yet, so calls to them would fail")

// find returns what the cluster has, unless it is newer.
func (i *Installer) find(ctx context.Context, w wanted) (live, error) {
	object, err := i.cluster.read(ctx, w.sort)
	if err != nil {
		return live{}, err
	}
	found := readLive(object)
	if i.o.Revision > 0 && found.revision > i.o.Revision {
		return live{}, fmt.Errorf("%s %s has revision %d, this is %d: %w", kindOf[w.sort], w.name, found.revision, i.o.Revision, ErrSuperseded)
	}
	return found, nil
}

// withdraw takes our webhooks out of a configuration, and deletes it if there are no others.
func (i *Installer) withdraw(ctx context.Context, s sort, found live) error {
	own := found.obsolete(wanted{})
	switch {
	case len(own) == 0:
		return nil
	case len(own) == len(found.names):
		return i.cluster.remove(ctx, s, found)
	default:
		return i.cluster.cut(ctx, s, found, own)
	}
}

// Remove takes the configurations away, and waits until none of them is enforced. Webhooks that
// others put into them stay. What is gone already, or was never there, is no error.
//
// It takes them from all replicas at once: call it when the webhook is uninstalled, from a job
// or the last replica, before the servers stop; not whenever a replica ends. A replica that
// starts later installs them again.
func (i *Installer) Remove(ctx context.Context) error {
	err := i.changeAll(ctx, func(w wanted) error {
		found, err := i.find(ctx, w)
		if err != nil {
			return err
		}
		return i.withdraw(ctx, w.sort, found)
	})
	if err != nil {
		return err
	}
	return i.await(ctx, i.gone())
}
