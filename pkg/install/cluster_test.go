// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Each marker request must use a new connection, with HTTP/1.1 and HTTP/2. Otherwise one of several API servers would
// answer all of them.
func TestQuestionsHaveFreshConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2 %v", http2), func(t *testing.T) {
			var connections atomic.Int64
			var bodies []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, r.Method+" "+r.URL.String()+" "+r.Proto+" "+string(body))
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"labels":{"install.admitkit.dev/marker":"some-label"}}}`)
			}))
			server.EnableHTTP2 = http2
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					connections.Add(1)
				}
			}
			server.StartTLS()
			defer server.Close()
			c, err := newKubeCluster(Options{Config: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, Configuration: webhook.ConfigurationOptions{Name: "hooks", Namespace: "ns"}})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := c.ask(t.Context(), "some-label"); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.ask(t.Context(), "other-label"); !errors.Is(err, errStripped) {
				t.Errorf("what came back has another label: %v", err)
			}
			if got := connections.Load(); got != 4 {
				t.Errorf("4 questions over %d connections", got)
			}
			proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
			want := `PATCH /apis/coordination.k8s.io/v1/namespaces/ns/leases/admitkit-marker?dryRun=All&fieldManager=admitkit-install&force=true&timeout=15s ` + proto
			if !strings.HasPrefix(bodies[0], want) || !strings.Contains(bodies[0], `"install.admitkit.dev/marker":"some-label"`) {
				t.Errorf("asked %s", bodies[0])
			}
		})
	}
}

// TestCut checks the JSON Patch by which cut removes two webhooks. It must remove the last webhook first, and require
// the resourceVersion that was read. After a conflict, cut must return errChanged.
func TestCut(t *testing.T) {
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "Conflict", "message": "modified"})
	}))
	defer server.Close()
	c, err := newKubeCluster(Options{Config: &rest.Config{Host: server.URL}, Configuration: webhook.ConfigurationOptions{Name: "hooks", Namespace: "ns"}})
	if err != nil {
		t.Fatal(err)
	}
	err = c.cut(t.Context(), validating, live{resourceVersion: "7"}, []int{0, 2})
	if !errors.Is(err, errChanged) || !strings.HasPrefix(err.Error(), "cannot change ValidatingWebhookConfiguration hooks: ") {
		t.Errorf("got %v", err)
	}
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/webhooks/2"},{"op":"remove","path":"/webhooks/0"}]`
	if string(body) != want {
		t.Errorf("sent %s", body)
	}
}

// apply must make the Namespace the owner of a configuration only if the configuration has our webhooks. Otherwise a
// deletion of the Namespace would delete the webhooks of others, and apply would fail without a Namespace.
func TestOwnerOfOurWebhooksOnly(t *testing.T) {
	var applied []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns","uid":"u1"}}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		applied = append(applied, string(body))
		_, _ = w.Write(body)
	}))
	defer server.Close()
	c, err := newKubeCluster(Options{Config: &rest.Config{Host: server.URL}, OwnedByNamespace: true,
		Configuration: webhook.ConfigurationOptions{Name: "hooks", Namespace: "ns"}})
	if err != nil {
		t.Fatal(err)
	}
	released := nothing(wanted{sort: validating, name: "hooks"}, live{resourceVersion: "7", uid: "u7"})
	ours := released.DeepCopy()
	ours.Object["webhooks"] = []any{map[string]any{"name": "a.example.com"}}
	for _, object := range []*unstructured.Unstructured{released, ours} {
		if err := c.apply(t.Context(), validating, object, false); err != nil {
			t.Fatal(err)
		}
	}
	if len(applied) != 2 || strings.Contains(applied[0], "ownerReferences") || !strings.Contains(applied[1], `"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"ns","uid":"u1"}]`) {
		t.Errorf("applied %s", applied)
	}
}
