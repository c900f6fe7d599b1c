// SPDX-License-Identifier: Apache-2.0

// Package skew tests what a hook sees while API servers of two minor versions serve one cluster.
package skew

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/build"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// newField is a field that the newest release has and the one before lacks, behind a feature gate.
const (
	newField = "spec.volumes[0].emptyDir.mode"
	newGate  = "EmptyDirVolumeMode"
)

// A cluster has an API server of each of the two newest releases, on one etcd.
type cluster struct{ newer, older *testcluster.Cluster }

func start(t *testing.T) *cluster {
	t.Helper()
	log.SetLogger(logr.Discard()) // API servers warn of unknown fields
	releases := build.Releases()
	run := func(release build.Release, etcd string, flags map[string][]string) *testcluster.Cluster {
		flags["disable-admission-plugins"] = []string{"ServiceAccount"}
		c, err := testcluster.StartWith(context.WithoutCancel(t.Context()), apiserver.Options{Kubernetes: release.Version(), Etcd: etcd, Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	newer := run(releases[0], "", map[string][]string{"feature-gates": {newGate + "=true"}})
	older := run(releases[1], newer.Etcd(), map[string][]string{})
	newer.AddPeer(older)
	return &cluster{newer, older}
}

// A call is what the hook saw of a request.
type call struct {
	name, operation string
	unknown         []string // fields that the hook's type lacks
	withMode        string   // which of the objects have the new field: "", "object", "oldObject" or both
}

// A watcher records the calls of a hook.
type watcher struct {
	mu    sync.Mutex
	calls []call
}

func (w *watcher) hook() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: "seen.example.com", Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		var has []string
		for name, raw := range map[string][]byte{"object": req.RawObject(), "oldObject": req.RawOldObject()} {
			if strings.Contains(string(raw), `"mode":`) {
				has = append(has, name)
			}
		}
		slices.Sort(has)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, call{req.Name, string(req.Operation), req.UnknownFields(), strings.Join(has, " ")})
		if req.Object.Labels == nil {
			req.Object.Labels = map[string]string{}
		}
		req.Object.Labels["seen"] = "yes"
		return nil
	})
}

// last returns the last call for a Pod.
func (w *watcher) last(t *testing.T, pod string) call {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range slices.Backward(w.calls) {
		if c.name == pod {
			return c
		}
	}
	t.Fatalf("the hook was not called for %s", pod)
	return call{}
}

func pod(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": "example.com/app"}},
			"volumes":    []any{map[string]any{"name": "data", "emptyDir": map[string]any{"mode": int64(0o700)}}},
		},
	}}
}

// mode returns the new field of a Pod as an API server shows it, or nil.
func mode(t *testing.T, of *testcluster.Cluster, name string) any {
	t.Helper()
	got := pod(name)
	if err := of.Client.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if got.GetLabels()["seen"] != "yes" {
		t.Errorf("%s has no label of the hook", name)
	}
	volumes, _, _ := unstructured.NestedSlice(got.Object, "spec", "volumes")
	value, _, _ := unstructured.NestedFieldNoCopy(volumes[0].(map[string]any), "emptyDir", "mode")
	return value
}

// TestNewField sends a field that only the newer API server knows through both.
func TestNewField(t *testing.T) {
	c := start(t)
	w := &watcher{}
	c.serve(t, "seen", w.hook())
	create := func(through *testcluster.Cluster, name string) {
		if err := through.Client.Create(t.Context(), pod(name)); err != nil {
			t.Fatal(err)
		}
	}

	create(c.newer, "through-newer")
	if got := w.last(t, "through-newer"); !slices.Equal(got.unknown, []string{newField}) || got.withMode != "object" {
		t.Errorf("through the newer API server, the hook saw %+v", got)
	}
	if mode(t, c.newer, "through-newer") == nil {
		t.Error("the patch of the hook removed a field that its type lacks")
	}
	if mode(t, c.older, "through-newer") != nil {
		t.Error("the older API server shows the field")
	}

	create(c.older, "through-older")
	if got := w.last(t, "through-older"); len(got.unknown) > 0 || got.withMode != "" {
		t.Errorf("through the older API server, the hook saw %+v", got)
	}
	if mode(t, c.newer, "through-older") != nil {
		t.Error("the older API server stored the field")
	}

	if out, err := c.older.Kubectl(t.Context(), "", "label", "pod", "through-newer", "changed=yes"); err != nil {
		t.Fatal(out, err)
	}
	if got := w.last(t, "through-newer"); got.operation != "UPDATE" || len(got.unknown) > 0 || got.withMode != "" {
		t.Errorf("in an update through the older API server, the hook saw %+v", got)
	}
	if mode(t, c.newer, "through-newer") != nil {
		t.Error("an update through the older API server kept the field")
	}
}

// TestDenyUnknownFields requires that a hook that denies unknown fields sees what the API server stores, on both.
func TestDenyUnknownFields(t *testing.T) {
	c := start(t)
	strict := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "strict.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil }).WithUnknownFields(webhook.DenyUnknownFields)
	w := &watcher{}
	c.serve(t, "strict", w.hook(), strict)
	err := c.newer.Client.Create(t.Context(), pod("denied"))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), newField) {
		t.Errorf("the newer API server answers %v", err)
	}
	if err := c.older.Client.Create(t.Context(), pod("without")); err != nil {
		t.Errorf("the older API server answers %v", err)
	}
}

// serve serves hooks, and waits until both API servers call them.
func (c *cluster) serve(t *testing.T, name string, hooks ...*webhook.Hook) {
	t.Helper()
	stop, err := c.newer.Serve(t.Context(), name, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
