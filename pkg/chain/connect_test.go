// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/realserver"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, patch, delete, deletecollection, connect]
- level: None
`

// A sharedServer is an API server that tests share.
type sharedServer struct {
	*apiserver.Server
	auditLog string
}

// startSharedServer starts an API server for a test and its subtests.
func startSharedServer(t *testing.T) sharedServer {
	t.Helper()
	dir := t.TempDir()
	policy, auditLog := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	server := apiservertest.Start(t, map[string][]string{
		"audit-policy-file": {policy}, "audit-log-path": {auditLog}, "audit-log-mode": {"blocking"}, "watch-cache": {"true"},
	})
	return sharedServer{server, auditLog}
}

// TestConnect runs all tests of Connect against one API server, because an API server starts slowly.
func TestConnect(t *testing.T) {
	c := startSharedServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, sharedServer)
	}{
		{"create", testCreate}, {"calls only", testCallsOnly}, {"update", testUpdate}, {"delete", testDelete}, {"custom resources", testCustomResources},
		{"connect", testExec}, {"rejections", testRejections}, {"failures", testFailures}, {"warnings", testWarnings},
		{"user", testUser}, {"addresses", testAddresses}, {"without an audit log", testNoAuditLog},
		{"other requests are not affected", testOthers}, {"an object that exists already", testExistsAlready}, {"concurrent requests", testConcurrent},
		{"close", testClose}, {"left behind", testLeftBehind}, {"refused", testRefused}, {"redirects and retries", testAgain},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// connect returns an engine with the audit log of the shared API server.
func (c sharedServer) connect(t testing.TB, w Webhooks, crds ...*apiextensionsv1.CustomResourceDefinition) Engine {
	t.Helper()
	engine, err := Connect(c.Config, w, ConnectOptions{CRDs: crds, AuditLog: c.auditLog})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// A responder is a webhook: a function that returns the response.
type responder func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func (a responder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := a(review.Request)
	response.UID = review.Request.UID
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
}

func allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// patching returns a webhook that allows each request and returns a patch.
func patching(operations string) responder {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(operations), PatchType: new(admissionv1.PatchTypeJSONPatch)}
	}
}

func rulesFor(group, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}
}

func mutatingHook(name string, rules []admissionregistrationv1.RuleWithOperations) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: name, Rules: rules, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
	}
}

func validatingHook(name string, rules []admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: name, Rules: rules, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
}

// configured returns [Webhooks] with up to two configurations of this name: one for the mutating and one for the
// validating hooks.
func configured(name string, handlers map[string]http.Handler, hooks ...any) Webhooks {
	w := Webhooks{Handlers: handlers}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, h := range hooks {
		switch h := h.(type) {
		case admissionregistrationv1.MutatingWebhook:
			mutating.Webhooks = append(mutating.Webhooks, h)
		case admissionregistrationv1.ValidatingWebhook:
			validating.Webhooks = append(validating.Webhooks, h)
		}
	}
	if len(mutating.Webhooks) > 0 {
		w.Mutating = append(w.Mutating, mutating)
	}
	if len(validating.Webhooks) > 0 {
		w.Validating = append(w.Validating, validating)
	}
	return w
}

var pods = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

func podJSON(name, more string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q%s},"spec":{"containers":[{"name":"app","image":"app:1"}]}}`, name, more)
}

func admit(t testing.TB, engine Engine, req Request) *Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := engine.Admit(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func testCreate(t *testing.T, c sharedServer) {
	every := rulesFor("", "pods", "*")
	engine := c.connect(t, configured("create.example.com", map[string]http.Handler{
		"a.create.example.com": responder(allow),
		"b.create.example.com": patching(`[{"op":"add","path":"/metadata/labels","value":{"b":"was-here"}}]`),
		"v.create.example.com": responder(allow),
	}, mutatingHook("a.create.example.com", every), mutatingHook("b.create.example.com", every), validatingHook("v.create.example.com", every)))
	for _, dryRun := range []bool{true, false} {
		result := admit(t, engine, Request{
			Operation: admissionv1.Create, Resource: pods, Namespace: "create", Object: podJSON("a", ""), DryRun: dryRun,
		})
		if !result.Admitted() {
			t.Fatal(result.Rejection)
		}
		want := []string{
			"a.create.example.com round 0 index 0 Allowed", "b.create.example.com round 0 index 1 Allowed mutated",
			"a.create.example.com round 1 index 0 Allowed", "v.create.example.com round 0 index 0 Allowed",
		}
		if diff := cmp.Diff(want, trace(result)); diff != "" {
			t.Error(diff)
		}
		if n := c.count(t, "/api/v1/namespaces/create/pods"); n != 0 {
			t.Errorf("%d Pods are left", n)
		}
	}
}

// A roundTripper is a function that sends a request.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// testCallsOnly compares the results with and without the reasons. It counts the requests for Namespaces, which only the
// reasons need.
func testCallsOnly(t *testing.T, c sharedServer) {
	var results []*Result
	for _, callsOnly := range []bool{false, true} {
		name := fmt.Sprintf("only-%t.example.com", callsOnly)
		reads := 0
		config := rest.CopyConfig(c.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/only" {
					reads++
				}
				return next.RoundTrip(r)
			})
		})
		engine, err := Connect(config, configured(name, map[string]http.Handler{
			name: patching(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`),
		}, mutatingHook(name, rulesFor("", "pods", "*"))), ConnectOptions{CallsOnly: callsOnly, Namespaces: map[string]map[string]string{"only": nil}})
		if err != nil {
			t.Fatal(err)
		}
		before := reads
		result := admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "only", Object: podJSON("a", ""), DryRun: true})
		if (len(result.Webhooks) == 0) != callsOnly || (reads == before) != callsOnly {
			t.Errorf("calls only: %t, %d reasons, %d reads of the Namespace", callsOnly, len(result.Webhooks), reads-before)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
		results = append(results, result)
	}
	if got := results[1]; len(got.Calls) != 1 || !got.Calls[0].Mutated || !bytes.Contains(got.Object, []byte(`"labels":{"a":"b"}`)) || got.Admitted() != results[0].Admitted() {
		t.Errorf("got %q, %s", trace(got), got.Object)
	}
}

// trace returns a line of text for each call in the result.
func trace(r *Result) []string {
	var lines []string
	for _, c := range r.Calls {
		line := fmt.Sprintf("%s round %d index %d %s", c.Webhook, c.Round, c.Index, c.Effect)
		if c.Mutated {
			line += " mutated"
		}
		lines = append(lines, line)
	}
	return lines
}

// count returns the number of objects at a path.
func (c sharedServer) count(t testing.TB, path string) int {
	t.Helper()
	a, err := realserver.NewAPI(c.Config, inprocess.DefaultManager)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var all realserver.List
	if err := a.Get(t.Context(), path, &all); err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}
