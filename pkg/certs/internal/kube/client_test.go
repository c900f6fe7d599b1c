// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

// testManager is the field manager of the clients in tests.
const testManager = "admitkit-certs"

// A testCluster is a real API server that tests share.
type testCluster struct{ *kubetest.Cluster }

// configuration creates a webhook configuration with webhooks of these names.
func (c testCluster) configuration(t *testing.T, kind string, webhooks ...string) (Target, dynamic.ResourceInterface) {
	t.Helper()
	name, configurations := c.Configuration(t, kind, webhooks...)
	return Target{Kind: kind, Name: name}, configurations
}

// TestClient runs all tests that need an API server. They share one API server.
func TestClient(t *testing.T) {
	c := testCluster{kubetest.Start(t)}
	for _, test := range []struct {
		name string
		run  func(*testing.T, testCluster)
	}{
		{"secret", testSecret}, {"races for the secret", testSecretRaces}, {"secrets that cannot be written", testUnwritableSecrets},
		{"webhooks", testWebhooks}, {"order of webhooks", testOrder}, {"some webhooks", testSomeWebhooks}, {"other kinds", testOtherKinds},
		{"kinds without a bundle", testWithoutBundle}, {"conflicts", testTargetConflicts}, {"races for a target", testTargetRaces},
		{"beside another owner", testOtherOwners}, {"removal by the owner", testRemovalByOwner},
		{"rights", testRights}, {"missing rights", testMissingRights}, {"watch", testWatch}, {"watch without permission", testWatchForbidden}, {"clock", testClock},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// cluster returns a client with a Secret of its own.
func (c testCluster) cluster(t *testing.T) *Client {
	t.Helper()
	return newTestCluster(t, c.Config, c.Namespace(t), "ca")
}

func newTestCluster(t *testing.T, config *rest.Config, namespace, name string) *Client {
	t.Helper()
	k, err := New(config, time.Now, namespace, name, testManager)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustRead(t *testing.T, k *Client, target Target) TargetState {
	t.Helper()
	state, err := k.ReadTarget(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func mustWrite(t *testing.T, k *Client, target Target, bundle string) {
	t.Helper()
	if err := k.WriteTarget(t.Context(), target, mustRead(t, k, target), []byte(bundle)); err != nil {
		t.Fatal(err)
	}
}

// bundles returns the caBundles of all entries as text, each as name=bundle.
func bundles(state TargetState) string {
	var all []string
	for _, e := range state.Entries {
		all = append(all, e.Name+"="+string(e.Bundle))
	}
	return strings.Join(all, " ")
}

func wantError(t *testing.T, err, target error, texts ...string) {
	t.Helper()
	kubetest.WantError(t, err, target, texts...)
	if target == nil && (errors.Is(err, ErrConflict) || errors.Is(err, ErrNoTarget)) {
		t.Errorf("got error %q, want one that is neither a conflict nor a missing target", err)
	}
}

// testContext returns a context with a logger that writes to the returned lines.
func testContext(t *testing.T) (context.Context, *kubetest.LogLines) {
	sink := kubetest.NewLogLines()
	return logr.NewContext(t.Context(), logr.New(sink)), sink
}

func encoded(bundle string) string { return base64.StdEncoding.EncodeToString([]byte(bundle)) }

func TestNew(t *testing.T) {
	_, err := New(&rest.Config{Host: "https://a b"}, time.Now, "ns", "ca", testManager)
	wantError(t, err, nil, "cannot create a client")
	config := &rest.Config{Host: "https://127.0.0.1:1", Timeout: 5}
	if _, err := New(config, time.Now, "ns", "ca", testManager); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config, &rest.Config{Host: "https://127.0.0.1:1", Timeout: 5}); diff != "" {
		t.Errorf("the config was changed (-got +want):\n%s", diff)
	}
}

// TestHungServer sends each kind of request to an API server that does not answer. Each request must fail after the
// timeout of the client.
func TestHungServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	k := newTestCluster(t, &rest.Config{Host: "http://" + listener.Addr().String()}, "ns", "ca")
	k.timeout = 20 * time.Millisecond
	target := Target{Kind: APIService, Name: "x"}
	_, err = k.ReadSecret(t.Context())
	wantError(t, err, nil, "Secret ns/ca: cannot get it: no response within 20ms")
	wantError(t, k.WriteSecret(t.Context(), Secret{}), nil, "Secret ns/ca: cannot create it: no response within 20ms")
	wantError(t, k.WriteSecret(t.Context(), Secret{Version: "1"}), nil, "Secret ns/ca: cannot get it: no response within 20ms")
	_, err = k.ReadTarget(t.Context(), target)
	wantError(t, err, nil, "APIService x: cannot get it: no response within 20ms")
	state := TargetState{Entries: []Entry{{}}}
	wantError(t, k.WriteTarget(t.Context(), target, state, nil), nil, "APIService x: cannot patch it: no response within 20ms")
}
