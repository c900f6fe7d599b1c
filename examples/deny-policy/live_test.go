// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/deny-policy/policy"
	"github.com/admitkit/admitkit/examples/internal/livetest"
	"github.com/admitkit/admitkit/examples/testcluster"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) { livetest.Main(m, &cluster) }

// serve registers the hooks with the API server until the end of the test. It returns the path of the file
// that they use as a ledger.
func serve(t *testing.T) string {
	t.Helper()
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	stop, err := cluster.Serve(t.Context(), "deny-policy", policy.Hooks(&policy.FileLedger{Path: ledger})...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return ledger
}

// namespace creates a namespace in which the rules are enforced. It is never deleted, because that needs
// a controller manager.
func namespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{policy.TeamLabel: "payments", policy.EnforceLabel: "true"},
	}}
	if err := cluster.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl, which may fail, and checks that its output contains want.
func kubectl(t *testing.T, stdin, want string, args ...string) {
	t.Helper()
	out, _ := cluster.Kubectl(t.Context(), stdin, args...)
	if !strings.Contains(out, want) {
		t.Errorf("kubectl %s printed\n%s\nwithout\n%s", strings.Join(args, " "), out, want)
	}
}

func TestRulesForWorkloadsAreEnforced(t *testing.T) {
	serve(t)
	namespace(t, "workloads")
	deployment := func(image string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop","namespace":"workloads","labels":{"app.kubernetes.io/name":"shop"}},
			"spec":{"replicas":1,"selector":{"matchLabels":{"app.kubernetes.io/name":"shop"}},"template":{"metadata":{"labels":{"app.kubernetes.io/name":"shop"}},
			"spec":{"containers":[{"name":"shop","image":"` + image + `","resources":{"limits":{"memory":"64Mi"}}}]}}}}`
	}
	kubectl(t, deployment("shop:latest"), `spec.template.spec.containers[0].image: Invalid value: "shop:latest"`, "apply", "-f", "-")
	kubectl(t, deployment("shop:v1"), "Warning: spec.replicas is 1", "apply", "-f", "-")
	kubectl(t, "", "image updated", "set", "image", "-n", "workloads", "deployment/shop", "shop=shop:v2")
	kubectl(t, "", `Invalid value: "shop"`, "set", "image", "-n", "workloads", "deployment/shop", "shop=shop")
	kubectl(t, "", "deployment.apps/shop scaled", "scale", "-n", "workloads", "deployment/shop", "--replicas=2")
	kubectl(t, "", "metadata.labels[app.kubernetes.io/name]: Required value", "run", "shop", "-n", "workloads", "--image=shop:v1")
	kubectl(t, "", "pod/elsewhere created (server dry run)", "run", "elsewhere", "--image=shop", "--dry-run=server")
}

// TestExistingObjectsCanBeUpdated updates and deletes a Pod that is older than the hooks and breaks their rules. The
// hooks must allow that, and deny only an update that breaks a further rule.
func TestExistingObjectsCanBeUpdated(t *testing.T) {
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"old","namespace":"older"},"spec":{"containers":[{"name":"old","image":"old"}]}}`
	namespace(t, "older")
	kubectl(t, pod, "pod/old created", "apply", "-f", "-")
	serve(t)
	kubectl(t, "", "pod/old labeled", "label", "-n", "older", "pod/old", "a=b")
	kubectl(t, "", `Invalid value: "older:latest"`, "set", "image", "-n", "older", "pod/old", "old=older:latest")
	kubectl(t, "", "deleted", "delete", "-n", "older", "pod/old")
}

func TestProtectedObjectsAreNotDeleted(t *testing.T) {
	serve(t)
	namespace(t, "deletion")
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "deletion", Name: "prices", Labels: map[string]string{policy.ProtectedLabel: "true"},
	}}
	if err := cluster.Client.Create(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	const denial = `ConfigMap "prices" has the label policy.example.com/protected`
	kubectl(t, "", denial, "delete", "-n", "deletion", "configmap/prices")
	kubectl(t, "", denial, "delete", "-n", "deletion", "configmap", "--all") // kubectl deletes the objects one by one
	err := cluster.Client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("deletion"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), denial) {
		t.Errorf("deletecollection: %v", err)
	}
	kubectl(t, "", "annotated", "annotate", "-n", "deletion", "configmap/prices", "policy.example.com/allow-deletion=true")
	kubectl(t, "", `"prices" deleted`, "delete", "-n", "deletion", "configmap/prices")

	kubectl(t, "", "labeled", "label", "namespace", "deletion", "policy.example.com/protected=true")
	kubectl(t, "", `Namespace "deletion" has the label`, "delete", "namespace", "deletion")
}

func TestEvictionsKeepTheGracePeriod(t *testing.T) {
	serve(t)
	namespace(t, "evictions")
	kubectl(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"shop","namespace":"evictions","labels":{"app.kubernetes.io/name":"shop"}},
		"spec":{"containers":[{"name":"shop","image":"shop:v1","resources":{"limits":{"memory":"64Mi"}}}]}}`, "created", "apply", "-f", "-")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evictions", Name: "shop"}}
	evict := func(grace *int64) error {
		return cluster.Client.SubResource("eviction").Create(t.Context(), pod,
			&policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: grace}})
	}
	if err := evict(ptr.To[int64](0)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kills the Pod") {
		t.Errorf("eviction without a grace period: %v", err)
	}
	if err := evict(nil); err != nil {
		t.Errorf("eviction with the grace period of the Pod: %v", err)
	}
}

func TestNamespacesAreRecorded(t *testing.T) {
	ledger := serve(t)
	create := func(want, yaml string, flags ...string) {
		t.Helper()
		kubectl(t, yaml, want, append([]string{"create", "-f", "-"}, flags...)...)
	}
	const owned = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"recorded","labels":{"policy.example.com/team":"payments"}}}`
	create("metadata.labels[policy.example.com/team]: Required value", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"nobodys"}}`)
	create("created (server dry run)", owned, "--dry-run=server")
	if _, err := os.Stat(ledger); !os.IsNotExist(err) {
		t.Fatalf("the ledger exists before the first namespace: %v", err)
	}
	create("namespace/recorded created", owned)
	var ns corev1.Namespace
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: "recorded"}, &ns); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(ledger)
	want := `{"uid":"` + string(ns.UID) + `","namespace":"recorded","team":"payments","user":"admin"}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("the ledger is %q (%v), want %q", got, err, want)
	}
}
