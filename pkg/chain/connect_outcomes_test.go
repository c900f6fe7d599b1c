// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func denying(message string) responder {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: message, Code: http.StatusConflict, Reason: "Busy"}}
	}
}

func testRejections(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	a, b, v := mutatingHook("a.deny.example.com", rules), mutatingHook("b.deny.example.com", rules), validatingHook("v.deny.example.com", rules)
	a.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"deny": "a"}}
	engine := c.connect(t, configured("deny.example.com", map[string]http.Handler{
		"a.deny.example.com": denying("not by a"), "b.deny.example.com": responder(allow), "v.deny.example.com": denying("not by v"),
	}, a, b, v))
	for label, want := range map[string]struct {
		trace    []string
		message  string
		verdicts []Reason
	}{
		"a": {[]string{"a.deny.example.com round 0 index 0 Denied"}, `admission webhook "a.deny.example.com" denied the request: not by a`, []Reason{Matches, ByRejection, ByRejection}},
		"v": {
			[]string{"b.deny.example.com round 0 index 1 Allowed", "v.deny.example.com round 0 index 0 Denied"},
			`admission webhook "v.deny.example.com" denied the request: not by v`, []Reason{ByObjectSelector, Matches, Matches},
		},
	} {
		result := admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "deny", Object: podJSON("p", `,"labels":{"deny":"`+label+`"}`)})
		if diff := cmp.Diff(want.trace, trace(result)); diff != "" {
			t.Fatal(diff)
		}
		if s := result.Rejection; s == nil || s.Message != want.message || s.Code != http.StatusConflict || s.Reason != "Busy" {
			t.Error(s)
		}
		if last := result.Calls[len(result.Calls)-1]; last.Error != want.message {
			t.Error(last.Error)
		}
		var decisions []Reason
		for _, v := range result.Webhooks {
			decisions = append(decisions, v.Reason)
			if v.Called != (v.Reason == Matches) {
				t.Errorf("%s: called is %t, the decision %s", v.Webhook, v.Called, v.Reason)
			}
		}
		if diff := cmp.Diff(want.verdicts, decisions); diff != "" {
			t.Error(diff)
		}
	}
	// The API server's own validation runs after the mutating webhooks.
	result := admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "deny", Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)})
	if s := result.Rejection; s == nil || s.Code != http.StatusUnprocessableEntity || len(result.Calls) != 1 || result.Calls[0].Effect != Allowed {
		t.Error(s, trace(result))
	}
	result = admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "deny", Object: []byte(`{"apiVersion":"v1",`)})
	if s := result.Rejection; s == nil || s.Code != http.StatusBadRequest || len(result.Calls) != 0 {
		t.Error(s, trace(result))
	}
}

// failingAnswers are webhooks whose calls fail, and the error that the API server reports for each.
var failingAnswers = []struct {
	name    string
	handler http.HandlerFunc
	message string
	status  int
	always  bool // the request fails under any failurePolicy
}{
	{"500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) },
		"failed to call webhook: an error on the server", 500, false},
	{"panic", func(http.ResponseWriter, *http.Request) { panic("broken") }, "failed to call webhook", 0, false},
	{"garbage", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "garbage") }, "failed to call webhook: ", 200, false},
	{"empty", func(http.ResponseWriter, *http.Request) {}, "failed to call webhook: ", 200, false},
	{"other uid", responder(allow).withUID("x"), "received invalid webhook response: expected response.uid=", 200, false},
	{"slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "failed to call webhook: ", 0, false},
	{"patch does not apply", patching(`[{"op":"remove","path":"/nowhere"}]`).ServeHTTP, "Unable to remove nonexistent key", 200, true},
	{"patch of a wrong type", patching(`[{"op":"replace","path":"/spec/containers","value":"none"}]`).ServeHTTP, "Internal error occurred", 200, true},
	{"patch is no patch", patching(`{}`).ServeHTTP, "received undecodable patch in webhook response", 200, false},
}

// withUID returns the webhook with a wrong uid in its responses.
func (a responder) withUID(uid string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			panic(err)
		}
		response := a(review.Request)
		response.UID = "x"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
	}
}

func testFailures(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	handlers := map[string]http.Handler{}
	var hooks []any
	for i, f := range failingAnswers {
		for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
			id := strings.ToLower(fmt.Sprintf("%s-%d", policy, i))
			h := mutatingHook(id+".fail.example.com", rules)
			h.FailurePolicy, h.TimeoutSeconds = &policy, new(int32(1))
			h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"fail": id}}
			h.ClientConfig.URL = new("https://webhook.example.com/here")
			hooks, handlers[h.Name] = append(hooks, h), f.handler
		}
	}
	engine := c.connect(t, configured("fail.example.com", handlers, hooks...))
	for i, f := range failingAnswers {
		t.Run(f.name, func(t *testing.T) {
			for policy, want := range map[string]Effect{"fail": Failed, "ignore": FailedOpen} {
				if f.always {
					want = Failed
				}
				result := admit(t, engine, Request{
					Operation: admissionv1.Create, Resource: pods, Namespace: "fail", DryRun: true,
					Object: podJSON("p", fmt.Sprintf(`,"labels":{"fail":"%s-%d"}`, policy, i)),
				})
				if result.Admitted() != (want == FailedOpen) {
					t.Errorf("%s: %v", policy, result.Rejection)
				}
				if len(result.Calls) != 1 {
					t.Fatalf("%d calls: %v", len(result.Calls), result.Rejection)
				}
				if call := result.Calls[0]; call.Effect != want || call.Status != f.status || !strings.Contains(call.Error, f.message) {
					t.Errorf("%s: %s, status %d: %s", policy, call.Effect, call.Status, call.Error)
				}
				if result.Rejection != nil && strings.Contains(result.Rejection.Message, "127.0.0.1") {
					t.Errorf("the rejection shows the address of the proxy: %s", result.Rejection.Message)
				}
			}
		})
	}
}

func testWarnings(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	warning := func(texts ...string) responder {
		return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Allowed: true, Warnings: texts, AuditAnnotations: map[string]string{"key": texts[0]}}
		}
	}
	engine := c.connect(t, configured("warn.example.com", map[string]http.Handler{
		"a.warn.example.com": warning("one", `two "quoted"`), "b.warn.example.com": warning("three"),
	}, mutatingHook("a.warn.example.com", rules), validatingHook("b.warn.example.com", rules)))
	result := admit(t, engine, Request{
		Operation: admissionv1.Create, Resource: pods, Namespace: "warn", DryRun: true,
		Object: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"app","image":"app:1","future":1}]}}`),
	})
	if diff := cmp.Diff([]string{`unknown field "spec.containers[0].future"`, "one", `two "quoted"`, "three"}, result.Warnings); diff != "" {
		t.Error(diff)
	}
	own := map[string]string{}
	for _, a := range result.Annotations {
		if strings.Contains(a.Key, "warn.example.com") {
			own[a.Key] = a.Value
		}
	}
	if diff := cmp.Diff(map[string]string{"a.warn.example.com/key": "one", "b.warn.example.com/key": "three"}, own); diff != "" {
		t.Error(diff)
	}
}

func testAgain(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	var busy atomic.Bool
	engine := c.connect(t, configured("again.example.com", map[string]http.Handler{
		"a.again.example.com": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/there") {
				http.Redirect(w, r, "/over/there", http.StatusTemporaryRedirect)
			} else if busy.Swap(true) {
				responder(allow).ServeHTTP(w, r)
			} else {
				w.Header().Set("Retry-After", "0")
				http.Error(w, "busy", http.StatusServiceUnavailable)
			}
		}),
	}, mutatingHook("a.again.example.com", rules)))
	result := admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "again", Object: podJSON("p", ""), DryRun: true})
	if diff := cmp.Diff([]string{"a.again.example.com round 0 index 0 Allowed"}, trace(result)); diff != "" {
		t.Error(diff, result.Rejection)
	}
	if call := result.Calls[0]; call.Attempts != 4 || call.Status != http.StatusOK {
		t.Errorf("%d attempts, status %d", call.Attempts, call.Status)
	}
}
