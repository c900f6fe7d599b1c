// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// managed holds the flags of a program that looks after its certificates and configurations.
type managed struct {
	on, force                                          bool
	secret, deployment, serviceAccount, kubeconfigFile string
	revision                                           int64
}

func (m *managed) addFlags(flags *flag.FlagSet, name string) {
	flags.BoolVar(&m.on, "self-managed", false, "make the certificates and install the hooks, without cert-manager and without YAML")
	flags.StringVar(&m.secret, "ca-secret", name+"-ca", "with --self-managed: `name` of the Secret in which the replicas share the CA")
	flags.StringVar(&m.deployment, "deployment", "", "with --self-managed: `name` of the Deployment: until it is rolled out, hooks that are new do not fail requests")
	flags.Int64Var(&m.revision, "revision", 0, "with --self-managed: `number` that grows with every rollout, so that an older program leaves the hooks of a newer one alone")
	flags.BoolVar(&m.force, "force", false, "with --self-managed: take over the hooks of another installation with the name of the program, such as one with a Service by one with --url")
	flags.StringVar(&m.kubeconfigFile, "kubeconfig", "", "with --self-managed outside of the cluster: kubeconfig `file`, or else those of $KUBECONFIG")
	flags.StringVar(&m.serviceAccount, "service-account", name, "with --print-rbac: `name` of the ServiceAccount of the program")
}

// config returns how to reach the API server.
func (m *managed) config() (*rest.Config, error) {
	if m.kubeconfigFile == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("this is not in a cluster: say which by --kubeconfig or $KUBECONFIG")
		}
		return config, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = m.kubeconfigFile
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}

// A selfManaged program makes its certificates and installs its hooks itself.
type selfManaged struct {
	certs     certs.Options
	install   install.Options
	installer *install.Installer
	source    *certs.SelfManaged
}

func (o *options) selfManaged(config *rest.Config, logger logr.Logger, hooks []*webhook.Hook) (*selfManaged, error) {
	names, ips, err := o.where.hosts()
	if err != nil {
		return nil, err
	}
	s := &selfManaged{
		certs: certs.Options{
			Config: config, Logger: logger.WithName("certs"),
			Namespace: o.where.namespace, Secret: o.managed.secret, DNSNames: names, IPAddresses: ips,
		},
		install: install.Options{
			Config: config, Logger: logger.WithName("install"),
			Configuration: o.where.configuration(o.name), FailOpenFirst: true,
			Deployment: o.managed.deployment, Revision: o.managed.revision, Force: o.managed.force,
		},
	}
	// The source needs the targets of the installer, which waits for the source.
	s.install.Ready = func(ctx context.Context) error { return certs.Ready(s.source)(ctx) }
	if s.installer, err = install.New(s.install, hooks...); err != nil {
		return nil, err
	}
	s.certs.Targets = s.installer.Targets()
	s.source, err = certs.NewSelfManaged(s.certs)
	return s, err
}

// run installs the hooks, and then sees to it that somebody hears when they are gone.
func (s *selfManaged) run(ctx context.Context) error {
	if err := s.installer.Run(ctx); err != nil {
		return err
	}
	return s.installer.Watch(ctx)
}

// writeRBAC writes exactly the rights that the program needs.
func (o *options) writeRBAC(w io.Writer, hooks []*webhook.Hook) error {
	s, err := o.selfManaged(&rest.Config{}, logr.Discard(), hooks)
	if err != nil {
		return err
	}
	permissions, err := install.RBAC(s.install, install.RBACOptions{ServiceAccount: o.managed.serviceAccount, Hooks: hooks, Certs: &s.certs})
	if err != nil {
		return err
	}
	// The right to create a Secret cannot be limited to a name. The manifests have the Secret,
	// empty, so that nobody needs it.
	for _, role := range permissions.Roles {
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"create"})
		})
	}
	text, err := permissions.YAML()
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// remove takes the hooks away from the API server, while the replicas still answer for them.
func (o *options) remove(ctx context.Context, logger logr.Logger, hooks []*webhook.Hook) error {
	config, err := o.managed.config()
	if err != nil {
		return err
	}
	s, err := o.selfManaged(config, logger, hooks)
	if err != nil {
		return err
	}
	return s.installer.Remove(ctx)
}
