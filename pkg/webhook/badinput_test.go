// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var badInputs = []struct {
	reason, method, contentType, encoding string
	body                                  []byte
	code                                  int32
	message                               string
	field                                 string // of the first cause
	uid                                   types.UID
}{
	{reason: "a method without a body", method: "GET", code: 405, message: `method GET: an AdmissionReview is sent by POST`},
	{reason: "a method with another meaning", method: "PUT", body: call{}.body(), code: 405, message: `method PUT: an AdmissionReview is sent by POST`},
	{reason: "a content type the API server never uses", contentType: "application/yaml", body: call{}.body(), code: 415,
		message: `content type "application/yaml": want application/json`},
	{reason: "a content type that cannot be read", contentType: "application/json; =", body: call{}.body(), code: 415,
		message: `content type "application/json; =": want application/json`},
	{reason: "no content type", contentType: "-", body: call{}.body(), code: 415, message: `content type "": want application/json`},
	{reason: "a content encoding", encoding: "gzip", body: call{}.body(), code: 415, message: `content encoding "gzip": the body must not be encoded`},
	{reason: "an empty body", body: []byte{}, code: 400, message: `the body is empty: want an AdmissionReview`},
	{reason: "only white space", body: []byte(" \n"), code: 400,
		message: `cannot read the AdmissionReview: not JSON: unexpected end of JSON looking for the beginning of a value at byte 2`},
	{reason: "truncated JSON, uid known", body: bytes.SplitAfter(call{}.body(), []byte(`"po`))[0], code: 400, uid: "u-1", field: "request.resource.resource",
		message: `cannot read the AdmissionReview: request.resource.resource: not JSON: unexpected end of JSON in a string at byte 184`},
	{reason: "trailing bytes", body: append(call{}.body(), "{}"...), code: 400, uid: "u-1",
		message: `cannot read the AdmissionReview: not JSON: unexpected '{' after the document at byte 416`},
	{reason: "another kind", body: []byte(thePod), code: 400, message: `cannot read the AdmissionReview: not an AdmissionReview: kind is "Pod"`},
	{reason: "no object", body: []byte(`[1]`), code: 400, message: `cannot read the AdmissionReview: not an AdmissionReview`},
	{reason: "an unknown version", body: bytes.Replace(call{}.body(), []byte("k8s.io/v1"), []byte("k8s.io/v2"), 1), code: 400, uid: "u-1", field: "apiVersion",
		message: `cannot read the AdmissionReview: apiVersion: unknown AdmissionReview version: "admission.k8s.io/v2" is neither admission.k8s.io/v1 nor admission.k8s.io/v1beta1`},
	{reason: "no request", body: []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`), code: 400, field: "request",
		message: `cannot read the AdmissionReview: request: no request`},
	{reason: "no uid", body: []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"operation":"CREATE"}}`), code: 400, field: "request.uid",
		message: `cannot read the AdmissionReview: request.uid: no uid`},
	{reason: "a member of the wrong type", body: call{more: `"dryRun":"no"`}.body(), code: 400, uid: "u-1", field: "request.dryRun",
		message: `cannot read the AdmissionReview: request.dryRun: wrong type: want boolean, got string at byte 423`},
	{reason: "more than the limit", body: call{more: `"x":"` + strings.Repeat("x", 1<<20) + `"`}.body(), code: 413,
		message: `the body is larger than the limit of 1048576 bytes`},
	{reason: "a kind the hook does not handle", body: call{kind: "apps/v1/Deployment", resource: "apps/v1/deployments"}.body(), code: 400, uid: "u-1",
		message: `the hook handles kind Pod (v1), not kind Deployment (apps/v1)`},
	{reason: "a version the hook does not handle", body: call{kind: "/v2/Pod", resource: "/v2/pods"}.body(), code: 400, uid: "u-1",
		message: `the hook handles kind Pod (v1), not kind Pod (v2)`},
	{reason: "an operation no rule covers", body: call{operation: "UPDATE", object: thePod}.body(), code: 400, uid: "u-1",
		message: `no rule of the hook covers UPDATE of pods (v1) (kind Pod (v1)); its rules are [CREATE] of ["pods"] in groups [""] versions ["v1"]`},
	{reason: "a subresource no rule covers", body: call{sub: "status"}.body(), code: 400, uid: "u-1",
		message: `no rule of the hook covers CREATE of pods/status (v1) (kind Pod (v1)); its rules are [CREATE] of ["pods"] in groups [""] versions ["v1"]`},
	{reason: "a create without an object", body: call{object: "null"}.body(), code: 400, uid: "u-1", message: `the request is a CREATE without an object`},
	{reason: "an object of the wrong shape", body: call{object: `{"spec":{"containers":[{"name":"a"},{"ports":[{"containerPort":"80"}]}]}}`}.body(), code: 400, uid: "u-1",
		field:   "spec.containers[1].ports[0].containerPort",
		message: `cannot decode object as v1.Pod: spec.containers[1].ports[0].containerPort: want int32, got string`},
	{reason: "an object that is not an object", body: call{object: `"pod"`}.body(), code: 400, uid: "u-1", message: `cannot decode object as v1.Pod: want object, got string`},
	{reason: "a value that its type cannot parse", body: call{object: `{"spec":{"containers":[{"resources":{"limits":{"cpu":"much"}}}]}}`}.body(), code: 400, uid: "u-1",
		field:   "spec.containers[0].resources.limits.cpu",
		message: `cannot decode object as v1.Pod: spec.containers[0].resources.limits.cpu: not a valid resource.Quantity`},
	{reason: "a number that fits no integer", body: call{object: `{"spec":{"priority":1e999}}`}.body(), code: 400, uid: "u-1", field: "spec.priority",
		message: `cannot decode object as v1.Pod: spec.priority: want int32, got number 1e999`},
	{reason: "a fraction for an integer", body: call{object: `{"spec":{"priority":1.5}}`}.body(), code: 400, uid: "u-1", field: "spec.priority",
		message: `cannot decode object as v1.Pod: spec.priority: want int32, got number 1.5`},
	{reason: "nested too deep", body: call{object: strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)}.body(), code: 400, uid: "u-1", field: "request.object",
		message: `cannot read the AdmissionReview: request.object: not JSON: nested deeper than 10000 levels at byte 50239`},
}

// TestBadInputGetsAClearStatus sends each bad input with the API server's own client. The client must return an API
// status with the expected one-sentence message, code, field and uid.
func TestBadInputGetsAClearStatus(t *testing.T) {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))}, label)
	e := serve(t, webhook.Options{MaxBodyBytes: 1 << 20}, hook)
	client := apiServerClient(t, webhookutil.ClientConfig{URL: e.url + hook.Path(), CABundle: e.ca.Bundle}, nil)
	for _, in := range badInputs {
		row(t, in.reason, func(t *testing.T) {
			request := client.Verb(cmp.Or(in.method, "POST")).SetHeader("Content-Type", cmp.Or(in.contentType, "application/json"))
			if in.contentType == "-" {
				request.SetHeader("Content-Type")
			}
			if in.encoding != "" {
				request.SetHeader("Content-Encoding", in.encoding)
			}
			if in.body != nil {
				request.Body(in.body)
			}
			err := request.Do(t.Context()).Error()
			var status *apierrors.StatusError
			if !errors.As(err, &status) {
				t.Fatalf("got %v, want an API status", err)
			}
			got := status.ErrStatus
			if got.Message != in.message || got.Code != in.code || got.Reason == "" || got.Reason == metav1.StatusReasonUnknown {
				t.Errorf("\n got %d %s %s\nwant %d %s", got.Code, got.Reason, got.Message, in.code, in.message)
			}
			var uid types.UID
			var field string
			if got.Details != nil {
				uid = got.Details.UID
				for _, cause := range got.Details.Causes {
					field = cause.Field
				}
			}
			if uid != in.uid || field != in.field {
				t.Errorf("got uid %q and field %q, want %q and %q", uid, field, in.uid, in.field)
			}
		})
	}
}

// A countingBody is an endless body of white space that counts the bytes read from it.
type countingBody struct{ read int }

func (b *countingBody) Read(p []byte) (int, error) {
	b.read += len(p)
	return copy(p, bytes.Repeat([]byte(" "), len(p))), nil
}

func TestABodyOverTheLimitIsNotReadToItsEnd(t *testing.T) {
	const limit = 1000
	hook := validating(admit).WithMaxBodyBytes(limit)
	for _, row := range []struct {
		reason string
		length int64
		most   int
	}{
		{"the length is unknown, and the body is a byte too long", -1, limit + 1},
		{"the length is known: nothing is read", limit + 1, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			body := &countingBody{}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = row.length
			w := httptest.NewRecorder()
			hook.ServeHTTP(w, r)
			answer := answer{code: w.Code, header: w.Header(), body: w.Body.Bytes()}
			if status := answer.failed(t); status.Code != http.StatusRequestEntityTooLarge || status.Reason != metav1.StatusReasonRequestEntityTooLarge {
				t.Errorf("got %+v", status)
			}
			if body.read > row.most {
				t.Errorf("read %d bytes, want %d at most", body.read, row.most)
			}
		})
	}
	exact := call{}.body()
	if a := post(t, validating(admit).WithMaxBodyBytes(int64(len(exact))), "", "application/json", bytes.NewReader(exact)); a.code != http.StatusOK {
		t.Errorf("a body of exactly the limit: %d %s", a.code, a.body)
	}
}

// hostile holds functions that return objects that no API server would send. Their size grows with n.
var hostile = map[string]func(n int) string{
	"nested deep": func(n int) string { return nested(n, `{"`+strings.Repeat("n", 50)+`":`, "}") },
	"a fault far down": func(n int) string {
		return strings.Replace(nested(n, `{"`+strings.Repeat("n", 50)+`":`, "}"), "1", `{"a":1,"a":2}`, 1)
	},
	"nested lists":    func(n int) string { return `{"x":` + nested(n, "[", "]") + `}` },
	"empty lists":     func(n int) string { return `{"x":[` + strings.Repeat("[],", n) + `[]]}` },
	"many containers": func(n int) string { return `{"spec":{"containers":[` + strings.Repeat(`{},`, n) + `{}]}}` },
	"huge integers": func(n int) string {
		digits := strings.Repeat("9", n)
		return `{"x":` + digits + `,"metadata":{"generation":` + digits + `}}`
	},
	"huge exponents": func(n int) string {
		return `{"x":1e999999999,"y":[` + strings.Repeat("-1e-9,", n) + `1],"spec":{"priority":1e99}}`
	},
	"invalid UTF-8": func(n int) string {
		return "{\"x\":\"" + strings.Repeat("\xff\xc3", n) + "\",\"metadata\":{\"labels\":{\"\xff\":\"\xff\"}}}"
	},
	"lone surrogates": func(n int) string { return `{"x":"` + strings.Repeat(`\ud800`, n) + `","metadata":{"name":"\udc00"}}` },
	"duplicate names": func(n int) string {
		return `{` + strings.Repeat(`"metadata":{"labels":{"a":"1","a":"2"}},`, n) + `"spec":null}`
	},
	"nulls": func(n int) string {
		return `{"metadata":null,"spec":{"containers":[` + strings.Repeat("null,", n) + `null]}}`
	},
}

func nested(n int, before, after string) string {
	return strings.Repeat(before, n) + "1" + strings.Repeat(after, n)
}

// TestHostileObjectsCostInProportionToTheirSize sends hostile objects to hooks of every type. Each
// answer must be a valid review or a Status, and an object four times as large may take about four
// times the memory.
func TestHostileObjectsCostInProportionToTheirSize(t *testing.T) {
	reg := admissionregistrationv1.MutatingWebhook{Name: "any.example.com", Rules: everything}
	hooks := map[string]*webhook.Hook{
		"built-in":  mutating(label),
		"unchanged": mutating(admit),
		"projection": webhook.Mutating(reg, func(_ context.Context, req *webhook.Request[labelled]) error {
			req.Object.Metadata.Labels = map[string]string{"a": "b"}
			return nil
		}),
		"unstructured": webhook.Mutating(reg, func(_ context.Context, req *webhook.Request[unstructured.Unstructured]) error {
			req.Object.Object["added"] = len(req.UnknownFields())
			return nil
		}),
	}
	for what, object := range hostile {
		for name, hook := range hooks {
			t.Run(what+", "+name, func(t *testing.T) {
				const n = 500
				small, large := costOf(t, hook, object(n)), costOf(t, hook, object(4*n))
				// The small call may use pooled memory, which is not counted. So 4 MiB more are allowed.
				if large > 8*small+4<<20 {
					t.Errorf("%d bytes were allocated for one object, and %d for one of four times its size", small, large)
				}
			})
		}
	}
}

type labelled struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
}

// costOf returns the number of bytes that a call with the object allocates.
func costOf(t *testing.T, hook *webhook.Hook, object string) uint64 {
	t.Helper()
	body := call{object: object}.body()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := post(t, hook, "?timeout=30s", "application/json", bytes.NewReader(body))
	runtime.ReadMemStats(&after)
	if a.code == http.StatusOK {
		a.allowed(t, call{object: object}, true)
	} else if status := a.failed(t); strings.Contains(status.Message, "panicked") {
		t.Error(status.Message)
	}
	return after.TotalAlloc - before.TotalAlloc
}
