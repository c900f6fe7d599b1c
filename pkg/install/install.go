// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An Installer applies the configurations of hooks to a cluster. [New] returns one. Its methods are safe for concurrent
// use, and several replicas may use installers at once.
type Installer struct {
	o       Options
	hooks   []*webhook.Hook
	wanted  []wanted // one per sort
	cluster cluster
	logger  logr.Logger
	removes bool      // the namespace alone decides what belongs to this installation
	status  *progress // shared with the copies of this Installer
}

// New returns an installer of the hooks. It sends no request. The error lists everything that is wrong with the options
// and the hooks.
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
	// A denial ends a round of mutating webhooks. As the first webhook, the marker spares the others a call.
	hooks = append(markerHooks(o, sortsOf(own)), hooks...)
	all, err := newWanted(o, hooks)
	if err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger.IsZero() {
		logger = logr.FromSlogHandler(slog.Default().Handler())
	}
	return &Installer{
		o: o.completed(), hooks: hooks, wanted: all, logger: logger.WithValues("configuration", o.Configuration.Name),
		status: &progress{now: Status{Phase: Idle}},
	}, nil
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

// Hooks returns the hooks that the server must serve: the given hooks, and the marker hooks by which [Installer.Wait]
// finds out what the API server enforces.
func (i *Installer) Hooks() []*webhook.Hook { return slices.Clone(i.hooks) }

// Targets returns the webhooks whose caBundle a self-managed source of package certs must maintain: the markers, and the
// webhooks at the same server. It omits webhooks with a Service, URL or CABundle of their own, and webhooks of other
// managers. The source ignores a configuration of another installation.
func (i *Installer) Targets() []certs.Target {
	var targets []certs.Target
	for _, w := range i.wanted {
		if w.object != nil {
			targets = append(targets, certs.Target{
				Kind: certs.TargetKind(kindOf[w.sort]), Name: w.name, Webhooks: w.besideMarker(),
				OwnerAnnotation: ownerAnnotation, Owner: i.o.owner(),
			})
		}
	}
	return targets
}
