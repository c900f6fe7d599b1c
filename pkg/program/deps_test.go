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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
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
	deps.RunInformers(factory)
	deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
	deps.NeedsIn(deps.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
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

// The registrations and permissions of a hook that reads objects can be printed without a
// cluster.
func TestRegistrationsNeedNoCluster(t *testing.T) {
	withoutCluster(t)
	for args, want := range map[string]string{
		"--print-configuration":                     "teams.example.com",
		"--print-rbac":                              "- namespaces\n  verbs:\n  - list\n  - watch",
		"--print-rbac --self-managed":               "- namespaces\n  verbs:\n  - list\n  - watch",
		"--print-rbac --service-account=a-b-c-only": "a-b-c-only",
		"--print-rbac --namespace=hooks":            "kind: Role\nmetadata:\n  name: teams\n  namespace: hooks\nrules:\n- apiGroups:\n  - \"\"\n  resources:\n  - configmaps",
		"--print-rbac --self-managed --ca-secret=c": "kind: Secret\nmetadata:\n  name: c\n  namespace: teams\n",
	} {
		var out bytes.Buffer
		if err := (Program{Name: "teams", Hooks: teamsHook}).Run(t.Context(), strings.Fields(args), &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, no %q in\n%s", args, err, want, out.String())
		}
	}
}

func TestOutputReportsThatNoPermissionsAreNeeded(t *testing.T) {
	withoutCluster(t)
	var out bytes.Buffer
	if err := newProgram().Run(t.Context(), []string{"--print-rbac"}, &out, io.Discard); err != nil || out.String() != "# example needs no permissions.\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

// If $KUBECONFIG names a file that does not exist, only a program whose hooks read objects fails. The error names
// $KUBECONFIG.
func TestUnusableKubeconfigOfTheEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/config")
	var out bytes.Buffer
	if err := newProgram().Run(t.Context(), []string{"--print-configuration"}, &out, io.Discard); err != nil || out.Len() == 0 {
		t.Errorf("hooks that read nothing: %v", err)
	}
	err := Program{Name: "teams", Hooks: teamsHook}.Run(t.Context(), []string{"--addr=127.0.0.1:0", "--ops-addr="}, io.Discard, io.Discard)
	if !errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "$KUBECONFIG: ") {
		t.Errorf("hooks that read: %v", err)
	}
}

// In a Pod without the token of its ServiceAccount, the error names the field that mounts it.
func TestPodWithoutAToken(t *testing.T) {
	withoutCluster(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := (&cluster{}).config(nil)
	if !errors.Is(err, ErrNoCluster) || !strings.Contains(err.Error(), "set automountServiceAccountToken: true in the Deployment") {
		t.Errorf("got %v", err)
	}
}

// A program whose hooks read objects fails at start if no cluster is configured. A program whose hooks read
// nothing starts.
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

// Hooks that read the same objects declare the same permissions.
func TestEqualRulesCountOnce(t *testing.T) {
	deps := NewDeps(nil, logr.Discard())
	rule := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}
	}
	deps.Needs(rule("pods"), rule("nodes"))
	deps.Needs(rule("pods"))
	deps.NeedsIn("shop", rule("pods"))
	if rules := deps.Rules(); len(rules[""]) != 2 || len(rules["shop"]) != 1 {
		t.Errorf("got %v", rules)
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

// A cacheOf is a Cache that counts as synced once the channel is closed.
type cacheOf chan struct{}

func (cacheOf) Start(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (c cacheOf) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

func noRequest(context.Context) error { return nil }

// The program is ready only when all caches have synced and all conditions are true. Otherwise the error of Ready names
// what is missing.
func TestReadyNamesWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deps := NewDeps(&rest.Config{}, logr.Discard())
		first, second, late := make(cacheOf), make(cacheOf), make(cacheOf)
		var loaded atomic.Bool
		deps.RunCache(first, noRequest)
		deps.RunCache(second, noRequest)
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
		loaded.Store(true)
		deps.RunCache(late, noRequest) // work that is added after Start starts at once
		expect("not ready yet: caches of the hooks")
		close(late)
		expect("")
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the caches returned the error of their context, which is a clean stop: %v", err)
		}
	})
}

// A cacheWithInformers behaves like a controller-runtime cache: before an informer is requested, it counts as synced.
type cacheWithInformers struct {
	cacheOf
	requested chan struct{}
}

func (c cacheWithInformers) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.requested:
		return c.cacheOf.WaitForCacheSync(ctx)
	default:
		return true // there is nothing to wait for
	}
}

func TestObjectsOfACacheAreRequestedBeforeItCountsAsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deps := NewDeps(&rest.Config{}, logr.Discard())
		c := cacheWithInformers{make(cacheOf), make(chan struct{})}
		deps.RunCache(c, func(context.Context) error { close(c.requested); return nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- deps.Start(ctx) }()
		synctest.Wait()
		if deps.Ready(ctx) == nil {
			t.Error("ready before the requested informer has synced")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A failingRunnable is a Runnable whose Start returns the error at once.
type failingRunnable struct{ error }

func (f failingRunnable) Start(context.Context) error { return f.error }

// A neverSynced is a Cache whose WaitForCacheSync returns false at once.
type neverSynced struct{ cacheOf }

func (neverSynced) WaitForCacheSync(context.Context) bool { return false }

// A notAFactory has the methods of Informers, but no WaitForCacheSync.
type notAFactory struct{}

func (notAFactory) Start(<-chan struct{}) {}

func (notAFactory) Shutdown() {}

// If one background task fails, Start ends the other tasks and returns the error of the failed one.
func TestFailuresOfBackgroundWork(t *testing.T) {
	broken := errors.New("the watch broke")
	rows := []struct {
		name string
		add  func(deps *Deps)
		want string
	}{
		{"work fails", func(deps *Deps) { deps.Run(failingRunnable{broken}) }, "the watch broke"},
		{"request fails", func(deps *Deps) {
			deps.RunCache(make(cacheOf), func(context.Context) error { return broken })
		}, "request the objects of a cache: the watch broke"},
		{"no request", func(deps *Deps) { deps.RunCache(make(cacheOf), nil) }, "Deps.RunCache got no request"},
		{"cache gives up", func(deps *Deps) { deps.RunCache(neverSynced{}, noRequest) }, "a cache of the hooks did not sync"},
		{"cache without RunCache", func(deps *Deps) { deps.Run(make(cacheOf)) }, "use Deps.RunCache"},
		{"factory without informers", func(deps *Deps) {
			clients, err := kubernetes.NewForConfig(deps.Config)
			if err != nil {
				t.Fatal(err)
			}
			deps.RunInformers(informers.NewSharedInformerFactory(clients, 0))
		}, "has no informers"},
		{"dynamic factory without informers", func(deps *Deps) {
			client, err := dynamic.NewForConfig(deps.Config)
			if err != nil {
				t.Fatal(err)
			}
			deps.RunInformers(dynamicinformer.NewDynamicSharedInformerFactory(client, 0))
		}, "has no informers"},
		{"no factory", func(deps *Deps) { deps.RunInformers(notAFactory{}) }, "is not an informer factory of client-go"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			deps := NewDeps(nil, logr.Discard())
			deps.RunCache(make(cacheOf), noRequest) // never syncs, so it runs until the failure ends it
			row.add(deps)
			if err := deps.Start(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if err := deps.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "twice") {
				t.Errorf("a second Start: %v", err)
			}
		})
	}
}

// A change of Deps.Config does not change the configuration that was passed to NewDeps.
func TestConfigIsACopy(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1"}
	NewDeps(config, logr.Discard()).Config.Host = "https://other.example.com"
	if config.Host != "https://127.0.0.1" {
		t.Errorf("host is %s", config.Host)
	}
}
