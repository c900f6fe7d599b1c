// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
)

// A testCluster is a real API server that tests share.
type testCluster struct {
	config *rest.Config
	client dynamic.Interface // of an administrator
}

// TestKubeCluster runs everything against one API server.
func TestKubeCluster(t *testing.T) {
	server, err := apiserver.Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := rest.CopyConfig(server.Config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // bundles here are no certificates
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := testCluster{config, client}
	for _, test := range []struct {
		name string
		run  func(*testing.T, testCluster)
	}{
		{"secret", testSecret}, {"races for the secret", testSecretRaces}, {"secrets that cannot be written", testUnwritableSecrets},
		{"webhooks", testWebhooks}, {"order of webhooks", testOrder}, {"some webhooks", testSomeWebhooks}, {"other kinds", testOtherKinds},
		{"kinds without a bundle", testWithoutBundle}, {"conflicts", testTargetConflicts}, {"races for a target", testTargetRaces},
		{"beside another owner", testOtherOwners}, {"removal by the owner", testRemovalByOwner},
		{"another installation", testAnotherInstallation},
		{"rights", testRights}, {"missing rights", testMissingRights}, {"watch", testWatch}, {"the whole source", testSelfManaged}, {"watch without permission", testWatchForbidden}, {"clock", testClock},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// cluster returns one with a Secret of its own.
func (c testCluster) cluster(t *testing.T) *kubeCluster {
	t.Helper()
	return newTestCluster(t, c.config, c.namespace(t), "ca")
}

func newTestCluster(t *testing.T, config *rest.Config, namespace, name string) *kubeCluster {
	t.Helper()
	k, err := newKubeCluster(config, wallClock, namespace, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (c testCluster) namespace(t *testing.T) string {
	t.Helper()
	return c.create(t, "v1", "Namespace", parse(t, `{"metadata": {"generateName": "certs-"}}`)).GetName()
}

var testResources = map[string]string{
	"Namespace": "namespaces", "Secret": "secrets", "ServiceAccount": "serviceaccounts",
	"Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
	"CustomResourceDefinition": "customresourcedefinitions", "APIService": "apiservices",
}

func (c testCluster) resource(apiVersion, kind, namespace string) dynamic.ResourceInterface {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	r := c.client.Resource(u.GroupVersionKind().GroupVersion().WithResource(testResources[kind]))
	if namespace != "" {
		return r.Namespace(namespace)
	}
	return r
}

// create makes an object and deletes it at the end of the test.
func (c testCluster) create(t *testing.T, apiVersion, kind string, content map[string]any) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	r := c.resource(apiVersion, kind, object.GetNamespace())
	made, err := r.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{}) })
	return made
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

func get(t *testing.T, r dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := r.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// merge changes an object as kubectl edit would.
func merge(t *testing.T, r dynamic.ResourceInterface, name, patch string) {
	t.Helper()
	if _, err := r.Patch(context.WithoutCancel(t.Context()), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
}

func deleteNow(t *testing.T, r dynamic.ResourceInterface, name string) {
	t.Helper()
	if err := r.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

const admission = "admissionregistration.k8s.io/v1"

// configuration creates a configuration with webhooks of these names.
func (c testCluster) configuration(t *testing.T, kind TargetKind, webhooks ...string) (Target, dynamic.ResourceInterface) {
	t.Helper()
	made := c.create(t, admission, string(kind), parse(t, fmt.Sprintf(
		`{"metadata": {"generateName": "certs-"}, "webhooks": [%s]}`, webhookList(webhooks...))))
	return Target{Kind: kind, Name: made.GetName()}, c.resource(admission, string(kind), "")
}

// webhookList is a list of webhooks that never match anything.
func webhookList(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf(`{
			"name": %q, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
			"clientConfig": {"service": {"namespace": "none", "name": "none", "path": "/%s"}},
			"rules": [{"operations": ["CREATE"], "apiGroups": ["certs.example.com"], "apiVersions": ["v1"], "resources": ["none"]}]}`, name, name))
	}
	return strings.Join(all, ", ")
}

func mustRead(t *testing.T, k *kubeCluster, target Target) targetState {
	t.Helper()
	state, err := k.readTarget(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func mustWrite(t *testing.T, k *kubeCluster, target Target, bundle string) {
	t.Helper()
	if err := k.writeTarget(t.Context(), target, mustRead(t, k, target), []byte(bundle)); err != nil {
		t.Fatal(err)
	}
}

// bundles returns the entries as name=bundle.
func bundles(state targetState) string {
	var all []string
	for _, e := range state.entries {
		all = append(all, e.name+"="+string(e.bundle))
	}
	return strings.Join(all, " ")
}

func wantError(t *testing.T, err, is error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("got error %q, want one that is %q", err, is)
	}
	if is == nil && (errors.Is(err, errConflict) || errors.Is(err, errNoTarget)) {
		t.Errorf("got error %q, want one that is neither a conflict nor a missing target", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want %q in it", err, text)
		}
	}
}

// testContext has a logger that writes to the returned lines.
func testContext(t *testing.T) (context.Context, *lineSink) {
	sink := &lineSink{lines: make(chan string, 100)}
	return logr.NewContext(t.Context(), logr.New(sink)), sink
}

type lineSink struct{ lines chan string }

func (*lineSink) Init(logr.RuntimeInfo)             {}
func (*lineSink) Enabled(int) bool                  { return true }
func (s *lineSink) WithName(string) logr.LogSink    { return s }
func (s *lineSink) WithValues(...any) logr.LogSink  { return s }
func (s *lineSink) Info(_ int, m string, kv ...any) { s.lines <- fmt.Sprint(m, kv) }
func (s *lineSink) Error(err error, m string, kv ...any) {
	s.lines <- fmt.Sprint("error ", err, m, kv)
}

func encoded(bundle string) string { return base64.StdEncoding.EncodeToString([]byte(bundle)) }

func TestNewKubeCluster(t *testing.T) {
	rows := []struct {
		why, namespace, name, want string
		config                     *rest.Config
	}{
		{"no config", "ns", "ca", "no configuration", nil},
		{"no namespace", "", "ca", `got "" and "ca"`, &rest.Config{}},
		{"no name", "ns", "", `got "ns" and ""`, &rest.Config{}},
		{"a config that cannot be used", "ns", "ca", "cannot make a client", &rest.Config{Host: "https://a b"}},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			_, err := newKubeCluster(row.config, wallClock, row.namespace, row.name, "")
			wantError(t, err, nil, row.want)
		})
	}
	config := &rest.Config{Host: "https://127.0.0.1:1", Timeout: 5}
	if _, err := newKubeCluster(config, wallClock, "ns", "ca", ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config, &rest.Config{Host: "https://127.0.0.1:1", Timeout: 5}); diff != "" {
		t.Errorf("the config was changed (-got +want):\n%s", diff)
	}
}

// An API server that takes the request and says nothing does not hold anybody up.
func TestHungServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	k := newTestCluster(t, &rest.Config{Host: "http://" + listener.Addr().String()}, "ns", "ca")
	k.timeout = 20 * time.Millisecond
	target := Target{Kind: APIService, Name: "x"}
	_, err = k.readSecret(t.Context())
	wantError(t, err, nil, "Secret ns/ca: cannot get it: no answer in 20ms")
	wantError(t, k.writeSecret(t.Context(), secret{}), nil, "Secret ns/ca: cannot create it: no answer in 20ms")
	wantError(t, k.writeSecret(t.Context(), secret{version: "1"}), nil, "Secret ns/ca: cannot get it: no answer in 20ms")
	_, err = k.readTarget(t.Context(), target)
	wantError(t, err, nil, "APIService x: cannot get it: no answer in 20ms")
	state := targetState{entries: []targetEntry{{}}}
	wantError(t, k.writeTarget(t.Context(), target, state, nil), nil, "APIService x: cannot patch it: no answer in 20ms")
}
