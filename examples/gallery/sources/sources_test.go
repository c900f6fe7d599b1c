// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/reads"
)

// start returns sources for a fake API server. Its discovery lists only the kind Pod. But a request for an object of
// any kind succeeds if the name is "new". It lists only the Pods of the namespace "new".
func start(t *testing.T) (*program.Deps, *Sources) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1/namespaces/new/pods":
			_ = json.NewEncoder(w).Encode(corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "new"}}}})
			return
		case path.Base(r.URL.Path) == "new":
			_ = json.NewEncoder(w).Encode(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
			return
		case r.URL.Path == "/api":
			_ = json.NewEncoder(w).Encode(metav1.APIVersions{Versions: []string{"v1"}})
			return
		case r.URL.Path == "/apis":
			_ = json.NewEncoder(w).Encode(metav1.APIGroupList{})
			return
		case r.URL.Path == "/api/v1":
			_ = json.NewEncoder(w).Encode(metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Kind: "Pod"}}})
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	}))
	t.Cleanup(server.Close)
	deps := program.NewDeps(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, logr.Discard())
	s, err := New(deps)
	if err != nil {
		t.Fatal(err)
	}
	return deps, s
}

// TestReadersAskTheAPIServer checks that the readers get an object from the API server if their cache does not contain
// it.
func TestReadersAskTheAPIServer(t *testing.T) {
	_, s := start(t)
	namespaces, err := s.Namespaces()
	if err != nil {
		t.Fatal(err)
	}
	classes, err := s.RuntimeClasses()
	if err != nil {
		t.Fatal(err)
	}
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := s.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	for resource, get := range map[string]func(ctx context.Context, name string) (metav1.Object, error){
		"pods":           func(ctx context.Context, name string) (metav1.Object, error) { return pods.Get(ctx, "team-a", name) },
		"nodes":          func(ctx context.Context, name string) (metav1.Object, error) { return nodes.Get(ctx, "", name) },
		"namespaces":     func(ctx context.Context, name string) (metav1.Object, error) { return namespaces.Get(ctx, "", name) },
		"runtimeclasses": func(ctx context.Context, name string) (metav1.Object, error) { return classes.Get(ctx, "", name) },
	} {
		if got, err := get(t.Context(), "new"); err != nil || got.GetName() != "new" {
			t.Errorf("%s: got %v, %v", resource, got, err)
		}
		if _, err := get(t.Context(), "gone"); !errors.Is(err, reads.ErrNotFound) {
			t.Errorf("%s: got %v", resource, err)
		}
	}
}

// TestPermissions checks that each source declares the permissions that it needs, and no others.
func TestPermissions(t *testing.T) {
	listed := []string{"list", "watch"}          // by an informer
	cached := append([]string{"get"}, listed...) // and by a reader, from the API server
	for resource, source := range map[string]struct {
		verbs []string
		use   func(*Sources)
	}{
		"namespaces":             {cached, func(s *Sources) { _, _ = s.Namespaces() }},
		"runtimeclasses":         {cached, func(s *Sources) { _, _ = s.RuntimeClasses() }},
		"storageclasses":         {listed, func(s *Sources) { s.StorageClasses() }},
		"ingressclasses":         {listed, func(s *Sources) { s.IngressClasses() }},
		"priorityclasses":        {listed, func(s *Sources) { s.PriorityClasses() }},
		"pods":                   {[]string{"get"}, func(s *Sources) { _, _ = s.Pods() }},
		"subjectaccessreviews":   {[]string{"create"}, func(s *Sources) { _, _ = s.Users() }},
		"ingresses":              {listed, func(s *Sources) { _, _ = s.Ingresses(nil) }},
		"limitranges":            {cached, func(s *Sources) { _, _ = s.LimitRanges() }},
		"serviceaccounts":        {cached, func(s *Sources) { _, _ = s.ServiceAccounts() }},
		"nodes":                  {cached, func(s *Sources) { _, _ = s.Nodes() }},
		"persistentvolumeclaims": {listed, func(s *Sources) { s.PersistentVolumeClaims() }},
		"persistentvolumes":      {listed, func(s *Sources) { s.PersistentVolumes() }},
		"csidrivers":             {listed, func(s *Sources) { s.CSIDrivers() }},
	} {
		deps, s := start(t)
		source.use(s)
		rules := deps.Rules()[""]
		if len(rules) != 1 || !slices.Equal(rules[0].Verbs, source.verbs) || !slices.Equal(rules[0].Resources, []string{resource}) {
			t.Errorf("%s: got %v", resource, rules)
		}
	}
}

// TestProgramsWithoutInformers checks that a program runs if its hooks use no informer.
func TestProgramsWithoutInformers(t *testing.T) {
	for name, use := range map[string]func(*Sources){
		"nothing": func(*Sources) {},
		"pods":    func(s *Sources) { _, _ = s.Pods() },
	} {
		t.Run(name, func(t *testing.T) {
			deps, s := start(t)
			use(s)
			ctx, stop := context.WithCancel(t.Context())
			stop()
			if err := errors.Join(deps.Ready(t.Context()), deps.Start(ctx)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKinds checks that the mapper discovers the kinds of the API server.
func TestKinds(t *testing.T) {
	_, s := start(t)
	kinds, err := s.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	pod := schema.GroupKind{Kind: "Pod"}
	if _, err := kinds.RESTMappings(pod, "v1"); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("before the first discovery: got %v", err)
	}
	kinds.discover()
	if _, err := kinds.RESTMappings(schema.GroupKind{Kind: "Other"}, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served: got %v", err)
	}
	mappings, err := kinds.RESTMappings(pod, "v1")
	if err != nil || len(mappings) != 1 || mappings[0].Resource.Resource != "pods" {
		t.Errorf("got %v, %v", mappings, err)
	}
}

// TestPodsAreListed checks that the lister returns the Pods from the API server, and declares the permission for that.
func TestPodsAreListed(t *testing.T) {
	deps, s := start(t)
	pods := s.PodsOfNamespaces()
	if got, err := pods.ListPods(t.Context(), "new"); err != nil || len(got) != 1 || got[0].Name != "new" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := pods.ListPods(t.Context(), "gone"); err == nil {
		t.Error("want an error")
	}
	if rules := deps.Rules()[""]; len(rules) != 1 || !slices.Equal(rules[0].Verbs, []string{"list"}) || !slices.Equal(rules[0].Resources, []string{"pods"}) {
		t.Errorf("got %v", rules)
	}
}

func TestNewNeedsAUsableConfiguration(t *testing.T) {
	if _, err := New(program.NewDeps(&rest.Config{Host: "://"}, logr.Discard())); err == nil {
		t.Error("want an error")
	}
}

// TestKindsThatCannotBeDiscovered checks that the error of a failed discovery has no API status, and that a kind that was
// known stays known.
func TestKindsThatCannotBeDiscovered(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/api":
			_ = json.NewEncoder(w).Encode(metav1.APIVersions{Versions: []string{"v1"}})
		case r.URL.Path == "/apis":
			_ = json.NewEncoder(w).Encode(metav1.APIGroupList{})
		default:
			_ = json.NewEncoder(w).Encode(metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Kind: "Pod"}}})
		}
	}))
	t.Cleanup(server.Close)
	deps := program.NewDeps(&rest.Config{Host: server.URL}, logr.Discard())
	s, err := New(deps)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := s.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	pod := schema.GroupKind{Kind: "Pod"}
	kinds.discover()
	if err := deps.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "the API server's kinds") {
		t.Errorf("before the kinds are known, the program is ready: %v", err)
	}
	var status apierrors.APIStatus
	if _, err := kinds.RESTMappings(pod, "v1"); err == nil || errors.As(err, &status) || meta.IsNoMatchError(err) {
		t.Errorf("got %v", err)
	}
	for _, isDown := range []bool{false, true} {
		down.Store(isDown)
		kinds.discover()
		if _, err := kinds.RESTMappings(pod, "v1"); err != nil {
			t.Errorf("down %v: got %v", isDown, err)
		}
		if err := deps.Ready(t.Context()); err != nil {
			t.Errorf("down %v: %v", isDown, err)
		}
	}
}

// TestCachesDropManagedFields checks that the objects of the caches have no managedFields.
func TestCachesDropManagedFields(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	for _, object := range []any{pod, "no object"} {
		if got, err := withoutManagedFields(object); err != nil || got != object {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if len(pod.ManagedFields) > 0 {
		t.Errorf("the Pod has %v", pod.ManagedFields)
	}
}

// TestListsWaitForTheirTurn checks that a list that waits for others ends with its context.
func TestListsWaitForTheirTurn(t *testing.T) {
	_, s := start(t)
	pods := s.PodsOfNamespaces()
	if !pods.slots.TryAcquire(mostLists) {
		t.Fatal("the slots are taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pods.ListPods(ctx, "new"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
