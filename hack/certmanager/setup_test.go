// SPDX-License-Identifier: Apache-2.0

// Package certmanager checks with cert-manager what docs/certificates.md says about it. The controllers and the
// cainjector of cert-manager run in the test, with a real API server and the program of an example.
package certmanager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/client/clientset/versioned"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	fromca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca" // the import registers the issuer
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

var env struct {
	api        *apiserver.Server
	clients    *kubernetes.Clientset
	certs      *versioned.Clientset
	kubeconfig string // path of the kubeconfig file
	program    string // path of the program deny-policy
}

func TestMain(m *testing.M) {
	need.APIServerForAll()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "certmanager")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if env.api, err = apiserver.Start(ctx, nil); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, env.api.Stop()) }()
	if err := build(ctx, dir); err != nil {
		return 1, err
	}
	controllers, err := startCertManager(ctx)
	if err != nil {
		return 1, fmt.Errorf("cert-manager: %w", err)
	}
	code = m.Run()
	cancel()
	if err := controllers.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return 1, fmt.Errorf("cert-manager: %w", err)
	}
	return code, nil
}

// build creates the clients, installs the CRDs of cert-manager, and compiles the program.
func build(ctx context.Context, dir string) error {
	env.clients = kubernetes.NewForConfigOrDie(env.api.Config)
	env.certs = versioned.NewForConfigOrDie(env.api.Config)
	env.kubeconfig, env.program = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "deny-policy")
	if err := os.WriteFile(env.kubeconfig, env.api.Kubeconfig, 0o600); err != nil {
		return err
	}
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		return fmt.Errorf("cannot find the source of cert-manager: %w", err)
	}
	crds := filepath.Join(strings.TrimSpace(string(source)), "deploy", "crds")
	for _, cmd := range []*exec.Cmd{
		env.api.Kubectl(ctx, env.kubeconfig, "create", "-f", crds),
		env.api.Kubectl(ctx, env.kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"),
		exec.CommandContext(ctx, "go", "build", "-C", "../..", "-o", env.program, "./examples/deny-policy"),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}
	return nil
}

// startCertManager runs the controllers of cert-manager for issuers with a CA, and cainjector.
func startCertManager(ctx context.Context) (*errgroup.Group, error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // the tests report errors
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: env.kubeconfig, IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
	})
	if err != nil {
		return nil, err
	}
	var all []controller.Interface
	for _, name := range []string{
		issuers.ControllerName, approver.ControllerName, fromca.CRControllerName, selfsigned.CRControllerName,
		trigger.ControllerName, keymanager.ControllerName, requestmanager.ControllerName, issuing.ControllerName,
		readiness.ControllerName, revisionmanager.ControllerName,
	} {
		c, err := controller.Known()[name](factory)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	shared, err := factory.Build()
	if err != nil {
		return nil, err
	}
	injector, err := newInjector(ctx, env.api.Config)
	if err != nil {
		return nil, fmt.Errorf("cainjector: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range all {
		group.Go(func() error { return c.Run(1, ctx) })
	}
	group.Go(func() error { return injector.Start(ctx) })
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return group, nil
}

func newInjector(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	known := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(known), certmanagerv1.AddToScheme(known)); err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(config, "cainjector"), ctrl.Options{Scheme: known, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	return manager, cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName: true, cainjector.ValidatingWebhookConfigurationName: true,
		},
	})
}
