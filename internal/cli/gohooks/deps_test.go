// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const teams = `
-- hooks/hooks.go --
package hooks

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func Hooks(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) {
	clients, err := kubernetes.NewForConfig(deps.Config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	lister := factory.Core().V1().Namespaces().Lister()
	_ = factory.Core().V1().Namespaces().Informer()
	deps.RunInformers(factory)
	deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
	return []*webhook.Hook{webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "teams.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		namespace, err := lister.Get("orphaned")
		if err != nil {
			return fmt.Errorf("%s", err)
		}
		return webhook.Denyf("%s has the labels %v", namespace.Name, len(namespace.Labels))
	})}, nil
}
`

// TestHooksWithDependenciesReadTheCluster checks that hooks with dependencies are described without a cluster, and read the
// cluster of the kubeconfig when they are served.
func TestHooksWithDependenciesReadTheCluster(t *testing.T) {
	server := apiservertest.Start(t, nil)
	admin, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "orphaned"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := Build(t.Context(), Options{Dir: module(t, teams), Package: "./hooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if !p.Deps || len(p.Rules[""]) != 1 || !slices.Equal(p.Rules[""][0].Resources, []string{"namespaces"}) {
		t.Errorf("dependencies %t, rules %v", p.Deps, p.Rules)
	}
	if _, validating, err := p.Describe(t.Context(), webhook.ConfigurationOptions{Name: "teams", URL: "https://127.0.0.1"}); err != nil || len(validating.Webhooks) != 1 {
		t.Errorf("%v: %v", validating, err)
	}
	// Like kubectl, hooks merge several files and skip those that do not exist.
	process, err := p.Start(t.Context(), StartOptions{Kubeconfig: "/nowhere" + string(filepath.ListSeparator) + kubeconfigOf(t, server.Kubeconfig)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Close)
	if response := post(t, process, "/validate/teams.example.com", review("web")); response.StatusCode != http.StatusOK {
		t.Errorf("status %s", response.Status)
	}
}

// TestBadKubeconfigOfHooksIsAnError checks that the error for an unreadable kubeconfig names the file.
func TestBadKubeconfigOfHooksIsAnError(t *testing.T) {
	p, err := Build(t.Context(), Options{Dir: module(t, teams), Package: "./hooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if _, err := p.Start(t.Context(), StartOptions{Kubeconfig: "/nowhere"}); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("got %v", err)
	}
}

func kubeconfigOf(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
