// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain"
)

// raw returns a webhook that answers with this status and body. UID in the body stands for the uid of the request.
func raw(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			panic(err)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(body, "UID", string(review.Request.UID)))
	})
}

func v1(response string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":` + response + `}`
}

// TestAnswers has webhooks give valid and invalid responses, under both failure policies. The policy must not decide
// whether a response is a failure, but only whether a failure rejects the request.
func TestAnswers(t *testing.T) {
	const callError, serverError, deny, allow = "call error", "server error", "deny", "allow"
	patch := `"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9hIiwidmFsdWUiOiJiIn1d"` // sets a label
	wrong := `"patchType":"JSONPatch","patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL21pc3NpbmcifV0="`                         // removes an absent value
	for _, test := range []struct {
		name       string
		answer     http.Handler
		mutating   string
		validating string
		text       string // a part of the message, if the request is rejected
	}{
		{"allowed", raw(200, v1(`{"uid":"UID","allowed":true}`)), allow, allow, ""},
		{"status 206", raw(206, v1(`{"uid":"UID","allowed":true}`)), allow, allow, ""},
		{"without kind", raw(200, `{"response":{"uid":"UID","allowed":true}}`), callError, callError, ""},
		{"YAML", raw(200, "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {uid: UID, allowed: true}"), allow, allow, ""},
		{"denied", raw(200, v1(`{"uid":"UID","allowed":false,"status":{"message":"no","code":418}}`)), deny, deny, "denied the request: no"},
		{"allowed is missing", raw(200, v1(`{"uid":"UID"}`)), deny, deny, "denied the request without explanation"},
		{"wrong case", raw(200, v1(`{"uid":"UID","Allowed":true}`)), deny, deny, ""},
		{"denied with code 500", raw(200, v1(`{"uid":"UID","allowed":false,"status":{"code":500}}`)), deny, deny, ""},
		{"status 404", raw(404, v1(`{"uid":"UID","allowed":true}`)), callError, callError, ""},
		{"status 500", raw(500, "oh"), callError, callError, "an error on the server"},
		{"status 503", raw(503, "busy"), callError, callError, ""},
		{"status 204", raw(204, ""), callError, callError, ""},
		{"empty", raw(200, ""), callError, callError, ""},
		{"not JSON", raw(200, "{"), callError, callError, ""},
		{"two documents", raw(200, v1(`{"uid":"UID","allowed":true}`)+"{}"), callError, callError, ""},
		{"other kind", raw(200, `{"apiVersion":"v1","kind":"Status","status":"Success"}`), callError, callError, ""},
		{"other version", raw(200, strings.Replace(v1(`{"uid":"UID","allowed":true}`), "/v1", "/v1beta1", 1)), callError, callError, ""},
		{"no response", raw(200, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`), callError, callError, "webhook response was absent"},
		{"other uid", raw(200, v1(`{"uid":"x","allowed":true}`)), callError, callError, "response.uid"},
		{"patch", raw(200, v1(`{"uid":"UID","allowed":true,`+patch+`}`)), allow, callError, "webhook returned response.patch"},
		{"patch and denial", raw(200, v1(`{"uid":"UID","allowed":false,`+patch+`}`)), deny, callError, ""},
		{"patch without type", raw(200, v1(`{"uid":"UID","allowed":true,"patch":"W10="}`)), callError, callError, ""},
		{"type without patch", raw(200, v1(`{"uid":"UID","allowed":true,"patchType":"JSONPatch"}`)), callError, callError, ""},
		{"patch that is none", raw(200, v1(`{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"e30="}`)), callError, callError, ""},
		{"empty patch", raw(200, v1(`{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"W10="}`)), allow, callError, ""},
		{"patch that does not apply", raw(200, v1(`{"uid":"UID","allowed":true,`+wrong+`}`)), serverError, callError, ""},
		{"panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh") }), callError, callError, "EOF"},
		{"redirect", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				raw(200, v1(`{"uid":"UID","allowed":true}`)).ServeHTTP(w, r)
				return
			}
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		}), allow, allow, ""},
		{"gzip", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			raw(200, v1(`{"uid":"UID","allowed":true}`)).ServeHTTP(onlyBody{w, z}, r)
			if err := z.Close(); err != nil {
				panic(err)
			}
		}), allow, allow, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
				m := chain.Webhooks{Handlers: map[string]http.Handler{"a.example.com": test.answer},
					Mutating: mutating(mutatingHook("a.example.com", func(h *admissionregistrationv1.MutatingWebhook) { h.FailurePolicy = &policy }))}
				v := chain.Webhooks{Handlers: map[string]http.Handler{"a.example.com": test.answer},
					Validating: validating(validatingHook("a.example.com", func(h *admissionregistrationv1.ValidatingWebhook) { h.FailurePolicy = &policy }))}
				for _, c := range []struct {
					w    chain.Webhooks
					want string
				}{{m, test.mutating}, {v, test.validating}} {
					got := admit(t, newChain(t, c.w), createPod("web"))
					checkResult(t, got)
					want := map[string]chain.Effect{allow: chain.Allowed, deny: chain.Denied, serverError: chain.Failed, callError: chain.Failed}[c.want]
					if c.want == callError && policy == admissionregistrationv1.Ignore {
						want = chain.FailedOpen
					}
					call := got.Calls[0]
					if call.Effect != want || call.Mutating != (c.w.Mutating != nil) {
						t.Errorf("%s, mutating %t: the outcome is %s (%s), want %s; the answer %s", policy, call.Mutating, call.Effect, call.Error, want, call.Response)
					}
					rejected := want == chain.Failed || want == chain.Denied
					if rejected != (got.Rejection != nil) {
						t.Fatalf("%s: the rejection is %v", policy, got.Rejection)
					}
					if rejected && c.want == test.mutating && !strings.Contains(got.Rejection.Message, test.text) {
						t.Errorf("%s: the message is %s", policy, got.Rejection.Message)
					}
					if rejected && strings.Contains(got.Rejection.Message, "admitkit.invalid") {
						t.Errorf("the message shows the engine: %s", got.Rejection.Message)
					}
					if open := want == chain.FailedOpen; open != hasAnnotation(got, "failed-open.") {
						t.Errorf("%s: the annotations are %+v", policy, got.Annotations)
					}
				}
			}
		})
	}
}

type onlyBody struct {
	http.ResponseWriter
	body io.Writer
}

func (w onlyBody) Write(b []byte) (int, error) { return w.body.Write(b) }

func hasAnnotation(r *chain.Result, prefix string) bool {
	for _, a := range r.Annotations {
		if strings.HasPrefix(a.Key, prefix) {
			return true
		}
	}
	return false
}

func TestTimeouts(t *testing.T) {
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, test := range []struct {
		name     string
		policy   admissionregistrationv1.FailurePolicyType
		hooks    int // the number of webhooks, called one after another, that hang for 10 s each
		elapsed  time.Duration
		outcomes string
		code     int32
		message  string
	}{
		{"fails", admissionregistrationv1.Fail, 1, 10 * time.Second, "Failed", 500, `failed calling webhook "w0.example.com": failed to call webhook: Post "https://w0.example.com/?timeout=10s": context deadline exceeded`},
		{"fails open", admissionregistrationv1.Ignore, 2, 20 * time.Second, "FailedOpen FailedOpen", 0, ""},
		{"request is out of time", admissionregistrationv1.Ignore, 4, 34 * time.Second, "FailedOpen FailedOpen FailedOpen FailedOpen", 504, "request did not complete within requested timeout - context deadline exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := chain.Webhooks{Handlers: map[string]http.Handler{}}
				var hooks []admissionregistrationv1.MutatingWebhook
				for i := range test.hooks {
					name := fmt.Sprintf("w%d.example.com", i)
					hooks = append(hooks, mutatingHook(name, func(h *admissionregistrationv1.MutatingWebhook) { h.FailurePolicy = &test.policy }))
					w.Handlers[name] = hang
				}
				w.Mutating = mutating(hooks...)
				c := newChain(t, w)
				start := time.Now()
				got := admit(t, c, createPod("web"))
				if elapsed := time.Since(start); elapsed != test.elapsed {
					t.Errorf("it took %s, want %s", elapsed, test.elapsed)
				}
				checkResult(t, got)
				var outcomes []string
				for _, call := range got.Calls {
					outcomes = append(outcomes, string(call.Effect))
				}
				if s := strings.Join(outcomes, " "); s != test.outcomes {
					t.Errorf("the outcomes are %s, want %s", s, test.outcomes)
				}
				if got.Calls[0].Duration != 10*time.Second || got.Calls[0].Status != 0 || got.Calls[0].Response != nil {
					t.Errorf("the first call is %+v", got.Calls[0])
				}
				if test.code == 0 != (got.Rejection == nil) {
					t.Fatalf("the rejection is %v", got.Rejection)
				}
				if r := got.Rejection; r != nil && (r.Code != test.code || !strings.Contains(r.Message, test.message)) {
					t.Errorf("the rejection is %d %s", r.Code, r.Message)
				}
			})
		})
	}
}

// TestRetryAfter has a webhook answer three times with Retry-After. All attempts must be recorded as one Call.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		busy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n++; n < 4 {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "busy", http.StatusTooManyRequests)
				return
			}
			raw(200, v1(`{"uid":"UID","allowed":true}`)).ServeHTTP(w, r)
		})
		got := admit(t, newChain(t, chain.Webhooks{Mutating: mutating(mutatingHook("a.example.com")),
			Handlers: map[string]http.Handler{"a.example.com": busy}}), createPod("web"))
		if len(got.Calls) != 1 {
			t.Fatalf("the calls are %+v", got.Calls)
		}
		if c := got.Calls[0]; c.Attempts != 4 || c.Effect != chain.Allowed || c.Status != 200 || c.Duration != 3*time.Second {
			t.Errorf("the call is %+v", c)
		}
	})
}

// TestClientThatGoesAway cancels the context of Admit while a handler hangs. Admit must return an error, even though
// the handler ignores the context.
func TestClientThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		c := newChain(t, chain.Webhooks{Mutating: mutating(mutatingHook("a.example.com")),
			Handlers: map[string]http.Handler{"a.example.com": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-forever })}})
		ctx, cancel := contextWithCancelAfter(t, time.Second)
		defer cancel()
		if got, err := c.Admit(ctx, createPod("web")); err == nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestDenials(t *testing.T) {
	for _, test := range []struct {
		name    string
		result  *metav1.Status
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		{"nothing said", nil, 400, "", `admission webhook "a.example.com" denied the request without explanation`},
		{"code of a success", &metav1.Status{Code: 200, Message: "no"}, 400, "", `admission webhook "a.example.com" denied the request: no`},
		{"odd code", &metav1.Status{Code: 418, Message: "no"}, 418, "", `admission webhook "a.example.com" denied the request: no`},
		{"reason only", &metav1.Status{Reason: metav1.StatusReasonForbidden}, 400, metav1.StatusReasonForbidden, `admission webhook "a.example.com" denied the request: Forbidden`},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := handlerFunc(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				return &admissionv1.AdmissionResponse{Result: test.result}
			})
			for _, w := range []chain.Webhooks{
				{Mutating: mutating(mutatingHook("a.example.com")), Handlers: map[string]http.Handler{"a.example.com": answer}},
				{Validating: validating(validatingHook("a.example.com")), Handlers: map[string]http.Handler{"a.example.com": answer}},
			} {
				got := admit(t, newChain(t, w), createPod("web"))
				checkResult(t, got)
				if got.Rejection == nil || got.Admitted() || got.Object != nil {
					t.Fatalf("got %+v", got)
				}
				if r := got.Rejection; r.Code != test.code || r.Reason != test.reason || r.Message != test.message || r.Kind != "Status" {
					t.Errorf("the rejection is %+v", r)
				}
				if got.Calls[0].Error != test.message {
					t.Errorf("the call says %s", got.Calls[0].Error)
				}
			}
		})
	}
}

func TestSeveralValidatingWebhooks(t *testing.T) {
	ignore := func(h *admissionregistrationv1.ValidatingWebhook) {
		h.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	unmatched := func(h *admissionregistrationv1.ValidatingWebhook) { h.ObjectSelector = selector("no", "thing") }
	got := admit(t, newChain(t, chain.Webhooks{
		Validating: validating(validatingHook("a.example.com", unmatched), validatingHook("b.example.com", ignore),
			validatingHook("c.example.com"), validatingHook("d.example.com"), validatingHook("e.example.com")),
		Handlers: map[string]http.Handler{
			"a.example.com": allowing(), "b.example.com": raw(500, "oh"), "c.example.com": denying("c says no"),
			"d.example.com": raw(500, "oh"), "e.example.com": allowing(),
		},
	}), createPod("web"))
	checkResult(t, got)
	for i, want := range []chain.Effect{chain.FailedOpen, chain.Denied, chain.Failed, chain.Allowed} {
		if c := got.Calls[i]; c.Effect != want || c.Index != i {
			t.Errorf("call %d: %s of %s (%s), index %d, want %s", i, c.Effect, c.Webhook, c.Error, c.Index, want)
		}
	}
	if !hasAnnotation(got, "failed-open.validating.webhook.admission.k8s.io/round_0_index_0") {
		t.Errorf("the annotations are %+v", got.Annotations)
	}
}
