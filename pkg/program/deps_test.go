// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// teamsHook returns a hook that denies ConfigMaps in Namespaces without a team. It reads the Namespaces from a cache.
func teamsHook(_ context.Context, deps *Deps) ([]*webhook.Hook, error) {
	clients, err := kubernetes.NewForConfig(deps.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	namespaces := factory.Core().V1().Namespaces().Lister()
	factory.Core().V1().Namespaces().Informer()
	deps.RunInformers(factory)
	deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
	return []*webhook.Hook{webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "teams.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "teams"}},
		}},
	}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
		namespace, err := namespaces.Get(req.Namespace)
		if err != nil {
			return err
		}
		if namespace.Labels["team"] == "" {
			return webhook.Denyf("the namespace %s has no team", req.Namespace)
		}
		return nil
	})}, nil
}

func withoutCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

// The registrations and permissions of a hook that reads need no cluster.
func TestRegistrationsNeedNoCluster(t *testing.T) {
	withoutCluster(t)
	for args, want := range map[string]string{
		"--print-configuration":                     "teams.example.com",
		"--print-rbac":                              "- namespaces\n  verbs:\n  - list\n  - watch",
		"--print-rbac --self-managed":               "- namespaces\n  verbs:\n  - list\n  - watch",
		"--print-rbac --service-account=a-b-c-only": "a-b-c-only",
	} {
		var out bytes.Buffer
		if err := (Program{Name: "teams", Hooks: teamsHook}).Run(t.Context(), strings.Fields(args), &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, no %q in\n%s", args, err, want, out.String())
		}
	}
}

// A program whose hooks read fails at start if no cluster is configured. One whose hooks read nothing starts.
func TestHooksThatReadNeedACluster(t *testing.T) {
	withoutCluster(t)
	args := []string{"--addr=127.0.0.1:0", "--ops-addr="}
	if err := (Program{Name: "teams", Hooks: teamsHook}).Run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, ErrNoCluster) {
		t.Errorf("got %v, want ErrNoCluster", err)
	}
	err := newProgram().Run(t.Context(), append(args, "--tls-cert-file=/nowhere"), io.Discard, io.Discard)
	if err == nil || errors.Is(err, ErrNoCluster) {
		t.Errorf("got %v, want an error about the certificate", err)
	}
}

func TestRequestsFailWithoutACluster(t *testing.T) {
	clients, err := kubernetes.NewForConfig(NewDeps(nil, logr.Discard()).Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{}); !errors.Is(err, ErrNoCluster) {
		t.Errorf("got %v, want ErrNoCluster", err)
	}
}

func TestFailingHooksFunctionIsNamed(t *testing.T) {
	p := Program{Name: "broken", Hooks: func(context.Context, *Deps) ([]*webhook.Hook, error) { return nil, errors.New("no rules") }}
	if err := p.Run(t.Context(), nil, io.Discard, io.Discard); err == nil || err.Error() != "cannot create the hooks: no rules" {
		t.Errorf("got %v", err)
	}
}

// A cacheOf is a Runnable with a cache that has synced when the channel is closed.
type cacheOf chan struct{}

func (cacheOf) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (c cacheOf) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// The program is ready only when all caches have synced and all conditions are true.
func TestReadyNamesWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deps := NewDeps(&rest.Config{}, logr.Discard())
		first, second := make(cacheOf), make(cacheOf)
		var loaded atomic.Bool
		deps.Run(first)
		deps.Run(second)
		deps.ReadyIf("the policy file", loaded.Load)
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			got := ""
			if err := deps.Ready(t.Context()); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		expect("not ready yet: caches of the hooks, the policy file") // also before Start
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- deps.Start(ctx) }()
		close(first)
		loaded.Store(true)
		expect("not ready yet: caches of the hooks")
		close(second)
		expect("")
		loaded.Store(false)
		expect("not ready yet: the policy file")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A failingRunnable fails at once.
type failingRunnable struct{ error }

func (f failingRunnable) Start(context.Context) error { return f.error }

func TestFailingRunnableStopsTheOthers(t *testing.T) {
	deps := NewDeps(&rest.Config{}, logr.Discard())
	want := errors.New("the watch broke")
	deps.Run(make(cacheOf))
	deps.Run(failingRunnable{want})
	if err := deps.Start(t.Context()); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}
