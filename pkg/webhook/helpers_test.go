// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// row runs a subtest for one row of a table. The name of the subtest is reason, which must not be empty.
func row(t *testing.T, reason string, test func(t *testing.T)) {
	t.Helper()
	if reason == "" {
		t.Fatal("a row has no reason")
	}
	t.Run(reason, test)
}

// A call is one admission call. Its zero value creates a Pod, with review version v1.
type call struct {
	version                    review.Version
	uid                        string
	kind, resource, sub        string // "group/version/Kind" and "group/version/resource"
	operation                  admissionv1.Operation
	name, namespace            string
	object, oldObject, options string // JSON
	more                       string // further members of the request
}

const thePod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop"},"spec":{"containers":[{"name":"app","image":"app:1"}]}}`

// completed returns c with defaults for unset fields. An object of "null" stays null.
func (c call) completed() call {
	c.version, c.uid = cmp.Or(c.version, review.V1), cmp.Or(c.uid, "u-1")
	c.kind, c.resource = cmp.Or(c.kind, "/v1/Pod"), cmp.Or(c.resource, "/v1/pods")
	if c.operation == "" {
		c.operation, c.object = admissionv1.Create, cmp.Or(c.object, thePod)
	}
	c.object, c.oldObject, c.options = cmp.Or(c.object, "null"), cmp.Or(c.oldObject, "null"), cmp.Or(c.options, "null")
	return c
}

// body returns the AdmissionReview in the form in which the API server writes it. It contains the documents unchanged.
func (c call) body() []byte {
	c = c.completed()
	kind, resource := split(c.kind), split(c.resource)
	b := fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":%q,"request":{"uid":%s,`, c.version.APIVersion(), quoted(c.uid))
	b = fmt.Appendf(b, `"kind":{"group":%q,"version":%q,"kind":%q},"resource":{"group":%q,"version":%q,"resource":%q},`,
		kind[0], kind[1], kind[2], resource[0], resource[1], resource[2])
	for _, optional := range []struct{ member, value string }{{"subResource", c.sub}, {"name", c.name}, {"namespace", c.namespace}} {
		if optional.value != "" {
			b = fmt.Appendf(b, `%q:%q,`, optional.member, optional.value)
		}
	}
	b = fmt.Appendf(b, `"operation":%q,"userInfo":{"username":"ada"},"object":%s,"oldObject":%s,"options":%s`,
		c.operation, c.object, c.oldObject, c.options)
	if c.more != "" {
		b = fmt.Appendf(b, ",%s", c.more)
	}
	return append(b, "}}\n"...)
}

// split splits a text such as "apps/v1/Deployment" at its slashes. The core group is "".
func split(text string) [3]string { return [3]string(strings.SplitN(text, "/", 3)) }

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// An answer is the HTTP response to a call.
type answer struct {
	code   int
	header http.Header
	body   []byte
	major  int // of the HTTP version
}

// ask calls the hook without a network.
func ask(tb testing.TB, hook http.Handler, c call) answer {
	tb.Helper()
	return post(tb, hook, "?timeout=5s", "application/json", bytes.NewReader(c.body()))
}

// post calls the hook as the server does for HTTP/1.1. It returns only after the handler has returned.
func post(tb testing.TB, hook http.Handler, query, contentType string, body io.Reader) answer {
	tb.Helper()
	return postBy(tb, "HTTP/1.1", hook, query, contentType, body)
}

// postHTTP2 calls the hook as the server does for HTTP/2. If the handler misses its deadline, postHTTP2 returns while
// the handler is still running.
func postHTTP2(tb testing.TB, hook http.Handler, query string, body []byte) answer {
	tb.Helper()
	return postBy(tb, "HTTP/2.0", hook, query, "application/json", bytes.NewReader(body))
}

func postBy(tb testing.TB, protocol string, hook http.Handler, query, contentType string, body io.Reader) answer {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/"+query, body)
	r.Proto = protocol
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(protocol)
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	return answer{code: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// accepted decodes an answer with the API server's own code, and returns the response. It fails the test unless the
// review belongs to the call and passes VerifyAdmissionResponse.
func (a answer) accepted(tb testing.TB, c call, mutating bool) *webhookrequest.AdmissionResponse {
	tb.Helper()
	c = c.completed()
	if a.code != http.StatusOK || a.header.Get("Content-Type") != "application/json" {
		tb.Fatalf("got status %d and content type %q: %s", a.code, a.header.Get("Content-Type"), a.body)
	}
	into := map[review.Version]runtime.Object{review.V1: &admissionv1.AdmissionReview{}, review.V1beta1: &admissionv1beta1.AdmissionReview{}}[c.version]
	if err := runtime.DecodeInto(reviewCodec, a.body, into); err != nil {
		tb.Fatalf("the API server cannot decode the answer: %v\n%s", err, a.body)
	}
	response, err := webhookrequest.VerifyAdmissionResponse(types.UID(c.uid), mutating, into)
	if err != nil {
		tb.Fatalf("the API server refuses the answer: %v\n%s", err, a.body)
	}
	// For v1beta1 the API server checks neither the apiVersion nor the uid.
	var wire admissionv1.AdmissionReview
	if err := json.Unmarshal(a.body, &wire); err != nil || wire.APIVersion != c.version.APIVersion() || string(wire.Response.UID) != c.uid {
		tb.Fatalf("got %s, want version %s and uid %q (%v)", a.body, c.version, c.uid, err)
	}
	return response
}

// allowed checks that the answer admits, and returns the patch and the patched object.
func (a answer) allowed(tb testing.TB, c call, mutating bool) (patch, object string) {
	tb.Helper()
	response := a.accepted(tb, c, mutating)
	if !response.Allowed {
		tb.Fatalf("denied: %s", a.body)
	}
	object = c.completed().object
	if len(response.Patch) == 0 {
		return "", object
	}
	p, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		tb.Fatalf("%v: %s", err, response.Patch)
	}
	patched, err := p.Apply([]byte(object))
	if err != nil {
		tb.Fatalf("the patch does not apply: %v: %s", err, response.Patch)
	}
	return string(response.Patch), string(patched)
}

// denied checks that the answer denies, and returns its status.
func (a answer) denied(tb testing.TB, c call, mutating bool) *metav1.Status {
	tb.Helper()
	response := a.accepted(tb, c, mutating)
	if response.Allowed || response.Result == nil || len(response.Patch) > 0 {
		tb.Fatalf("want a denial with a status and no patch, got %s", a.body)
	}
	return response.Result
}

func wantJSON(tb testing.TB, got, want string) {
	tb.Helper()
	var g, w any
	if err := errors.Join(json.Unmarshal([]byte(got), &g), json.Unmarshal([]byte(want), &w)); err != nil {
		tb.Fatalf("%v\n got %s\nwant %s", err, got, want)
	}
	if !reflect.DeepEqual(g, w) {
		tb.Errorf("\n got %s\nwant %s", got, want)
	}
}

// failed checks that the answer is a failure to decide, and returns its status.
func (a answer) failed(tb testing.TB) *metav1.Status {
	tb.Helper()
	status := &metav1.Status{}
	if err := json.Unmarshal(a.body, status); err != nil {
		tb.Fatalf("want a Status, got %d %q: %v", a.code, a.body, err)
	}
	if a.code < 400 || a.code > 599 || int(status.Code) != a.code || status.Status != metav1.StatusFailure ||
		status.Kind != "Status" || status.APIVersion != "v1" || status.Message == "" || status.Reason == "" ||
		a.header.Get("Content-Type") != "application/json" {
		tb.Fatalf("want a complete Status of a failure, got %d %q: %s", a.code, a.header.Get("Content-Type"), a.body)
	}
	return status
}

// reviewCodec decodes answers as the API server's webhook client does. It corresponds to the codec of NewClientManager
// with both versions of the review.
var reviewCodec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1beta1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec(admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion)
}()

// mutating returns a mutating hook for Pods and every operation. validating returns a validating one.
func mutating(f func(context.Context, *webhook.Request[corev1.Pod]) error) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "pods.example.com", Rules: everything}, f)
}

func validating(f func(context.Context, *webhook.Request[corev1.Pod]) error) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "pods.example.com", Rules: everything}, f)
}

var everything = []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{"*"},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
}}

// both runs a test with a mutating and a validating hook that share a handler.
func both(t *testing.T, f func(context.Context, *webhook.Request[corev1.Pod]) error, test func(t *testing.T, hook *webhook.Hook, isMutating bool)) {
	t.Helper()
	t.Run("mutating", func(t *testing.T) { test(t, mutating(f), true) })
	t.Run("validating", func(t *testing.T) { test(t, validating(f), false) })
}

func admit(context.Context, *webhook.Request[corev1.Pod]) error { return nil }
