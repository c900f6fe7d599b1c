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
	installation
	hooks []*webhook.Hook
}

// An installation is the state that the parts of an Installer share, such as the wanted configurations and the cluster.
type installation struct {
	o       Options
	wanted  []wanted // the mutating configuration, then the validating one
	cluster cluster
	logger  logr.Logger
	status  progress
}

// New returns an installer of the hooks. It sends no request. The error lists everything that is wrong with the options
// and the hooks.
func New(o Options, hooks ...*webhook.Hook) (*Installer, error) {
	if o.Config == nil {
		return nil, errors.New("Config is nil: set it to the client configuration for the API server")
	}
	i, err := newInstaller(o, hooks)
	if err != nil {
		return nil, err
	}
	if i.cluster, err = newKubeCluster(o); err != nil {
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
	// After a denial the API server calls no further mutating webhooks. The marker comes first, so that a marker request
	// reaches no other webhook.
	hooks = append(markerHooks(o, sortsOf(own)), hooks...)
	all, err := newWanted(o, hooks)
	if err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger.IsZero() {
		logger = logr.FromSlogHandler(slog.Default().Handler())
	}
	return &Installer{hooks: hooks, installation: installation{
		o: o.completed(), wanted: all, logger: logger.WithValues("configuration", o.Configuration.Name),
		status: progress{now: Status{Phase: Idle}},
	}}, nil
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

// Targets returns the targets of a self-managed certificate source (see package certs): the webhooks whose caBundle the
// source must keep up to date. These are the marker webhooks (see [Installer.Hooks]) and the webhooks of this server.
// Targets omits webhooks that set their own Service, URL or CABundle, and webhooks of other managers. The source does not
// change the configurations of another installation.
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

// Status returns the state of the installation.
func (i *Installer) Status() Status { return i.status.current() }
