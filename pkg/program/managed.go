// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"flag"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
)

// managed holds the flags of a program that manages its certificates and configurations.
type managed struct {
	on, force                          bool
	secret, deployment, serviceAccount string
	revision                           int64
}

func (m *managed) addFlags(flags *flag.FlagSet, name string) {
	flags.BoolVar(&m.on, "self-managed", false, "create the certificates and register the hooks, without cert-manager and YAML; whoever has the token of the program's ServiceAccount can then change the webhook configurations, see --print-rbac")
	flags.StringVar(&m.secret, "ca-secret", name+"-ca", "with --self-managed: `name` of the Secret in which the replicas share the CA")
	flags.StringVar(&m.deployment, "deployment", "", "with --self-managed: `name` of the Deployment; until its rollout is complete, new hooks have failurePolicy Ignore")
	flags.Int64Var(&m.revision, "revision", 0, "with --self-managed: `number` that grows with every rollout, so that an older program does not replace the hooks of a newer one")
	flags.BoolVar(&m.force, "force", false, "with --self-managed: take over the configurations of another installation with the same name")
	flags.StringVar(&m.serviceAccount, "service-account", name, "with --print-rbac: `name` of the ServiceAccount of the program")
}

// A selfManaged creates the certificates and installs the hooks of a program with --self-managed.
type selfManaged struct {
	certs     certs.Options
	install   install.Options
	installer *install.Installer
	source    *certs.SelfManaged
}

// selfManaged returns the certificate source and the installer, connected to each other. It installs nothing.
func (j *job) selfManaged() (*selfManaged, error) {
	names, ips, err := j.address.hosts()
	if err != nil {
		return nil, err
	}
	config, logger := j.config, j.deps.Logger
	if config == nil { // there is no cluster, so only permissions are printed
		config = &rest.Config{}
	}
	s := &selfManaged{
		certs: certs.Options{
			Config: config, Logger: logger.WithName("certs"),
			Namespace: j.address.namespace, Secret: j.managed.secret, DNSNames: names, IPAddresses: ips,
		},
		install: install.Options{
			Config: config, Logger: logger.WithName("install"),
			Configuration: j.address.configuration(j.name), FailOpenFirst: true, OwnedByNamespace: j.address.url == "",
			Deployment: j.managed.deployment, Revision: j.managed.revision, Force: j.managed.force,
		},
	}
	// The source needs the targets of the installer, and the installer waits for the source and for the hooks.
	s.install.Ready = func(ctx context.Context) error { return j.ready(s.source)(ctx) }
	if s.installer, err = install.New(s.install, j.hooks...); err != nil {
		return nil, err
	}
	s.certs.Targets = s.installer.Targets()
	s.source, err = certs.NewSelfManaged(s.certs)
	return s, err
}

// run installs the hooks when they are ready. It then watches the installation and logs changes by other clients.
func (s *selfManaged) run(ctx context.Context, deps *Deps) error {
	if err := deps.waitReady(ctx); err != nil {
		return nil //nolint:nilerr // the program was stopped before it was ready
	}
	if err := s.installer.Run(ctx); err != nil {
		return err
	}
	return s.installer.Watch(ctx)
}

// remove removes the webhook configurations that --self-managed installed. The replicas must keep running until it
// returns, because they answer the last calls.
func (j *job) remove(ctx context.Context) error {
	s, err := j.selfManaged()
	if err != nil {
		return err
	}
	return s.installer.Remove(ctx)
}
