// SPDX-License-Identifier: Apache-2.0

// Package webhooktest calls webhooks in tests as the API server does. It sends an AdmissionReview
// over HTTP, and applies the patch with the library that the API server uses. It can call any
// http.Handler that implements the protocol, such as a [webhook.Hook].
//
// The functions fail the test if the call itself is invalid. They are safe for concurrent use, as
// far as the testing.TB allows.
package webhooktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Request returns the request that the API server sends for an operation on a resource, such as
// "pods" or "pods/eviction". The resource gets the group and version of kind. If these differ, as
// for the scale of a Deployment, change Resource in the result.
//
// object and old are the new and the stored object: Go values, or JSON as a string, []byte or json.RawMessage. Use nil,
// or a nil pointer, where the operation has none. Request adds a missing apiVersion and kind. The request has a UID,
// the name and namespace of the object, and default options. To use other values, or to set UserInfo or DryRun, change
// the result.
func Request(t testing.TB, op admissionv1.Operation, kind schema.GroupVersionKind, resource string, object, old any) *admissionv1.AdmissionRequest {
	t.Helper()
	name, sub, _ := strings.Cut(resource, "/")
	object, old = untyped(object), untyped(old)
	checkDocuments(t, op, object, old)
	req := &admissionv1.AdmissionRequest{
		UID:         "webhooktest",
		Kind:        metav1.GroupVersionKind(kind),
		Resource:    metav1.GroupVersionResource(kind.GroupVersion().WithResource(name)),
		SubResource: sub,
		Operation:   op,
		Object:      document(t, kind, object),
		OldObject:   document(t, kind, old),
		Options:     options(op),
		DryRun:      new(bool),
	}
	req.RequestKind, req.RequestResource, req.RequestSubResource = &req.Kind, &req.Resource, req.SubResource
	var meta metav1.PartialObjectMetadata
	for _, raw := range [][]byte{req.OldObject.Raw, req.Object.Raw} {
		if raw != nil && kjson.UnmarshalCaseSensitivePreserveInts(raw, &meta) == nil {
			req.Name, req.Namespace = meta.Name, meta.Namespace
		}
	}
	return req
}

// untyped returns v, or a nil interface if v is a nil pointer, map or slice.
func untyped(v any) any {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if r.IsNil() {
			return nil
		}
	}
	return v
}

var operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}

// checkDocuments fails the test if the operation is unknown, or if the API server never sends it with this combination
// of object and old object.
func checkDocuments(t testing.TB, op admissionv1.Operation, object, old any) {
	t.Helper()
	if !slices.Contains(operations, op) {
		t.Fatalf("operation %q is unknown: use one of %q", op, operations)
	}
	hasObject, hasOld := op != admissionv1.Delete, op == admissionv1.Update || op == admissionv1.Delete
	if (object != nil) != hasObject || (old != nil) != hasOld {
		t.Fatalf("%s: CREATE and CONNECT take an object, UPDATE an object and the old one, DELETE the old one only", op)
	}
}

// document encodes an object with its apiVersion and kind, which the API server always sends.
func document(t testing.TB, kind schema.GroupVersionKind, v any) runtime.RawExtension {
	t.Helper()
	var raw []byte
	switch v := v.(type) {
	case nil:
		return runtime.RawExtension{}
	case string:
		raw = []byte(v)
	case []byte:
		raw = v
	case json.RawMessage:
		raw = v
	default:
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		raw = encoded
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(raw, &members)
	if err == nil && members == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		t.Fatalf("want a JSON object: %v: %s", err, raw)
	}
	if members["apiVersion"] != nil && members["kind"] != nil {
		return runtime.RawExtension{Raw: raw}
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	members["apiVersion"], _ = json.Marshal(apiVersion)
	members["kind"], _ = json.Marshal(name)
	raw, _ = json.Marshal(members)
	return runtime.RawExtension{Raw: raw}
}

// options returns the options that the API server sends by default.
func options(op admissionv1.Operation) runtime.RawExtension {
	kinds := map[admissionv1.Operation]string{
		admissionv1.Create: "CreateOptions", admissionv1.Update: "UpdateOptions", admissionv1.Delete: "DeleteOptions",
	}
	if kinds[op] == "" {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: []byte(`{"kind":"` + kinds[op] + `","apiVersion":"meta.k8s.io/v1"}`)}
}

// Decision sends the request in a v1 review and returns the decision. It fails the test if the
// webhook fails to decide or the answer has another UID.
func Decision(t testing.TB, hook http.Handler, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	code, body := send(t, hook, req)
	var review admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil || code != http.StatusOK || review.Response == nil {
		t.Fatalf("the webhook failed to decide, with HTTP %d: %s", code, body)
	}
	if review.Response.UID != req.UID {
		t.Fatalf("the request has the uid %q, but the response has %q", req.UID, review.Response.UID)
	}
	return review.Response
}

// Failure sends the request in a v1 review and returns the status of the failure to decide. It
// fails the test if the webhook decides.
func Failure(t testing.TB, hook http.Handler, req *admissionv1.AdmissionRequest) *metav1.Status {
	t.Helper()
	code, body := send(t, hook, req)
	var status metav1.Status
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &status); err != nil || code < 400 || int(status.Code) != code {
		t.Fatalf("want a failure to decide, got a decision, with HTTP %d: %s", code, body)
	}
	return &status
}

func send(t testing.TB, hook http.Handler, req *admissionv1.AdmissionRequest) (code int, body []byte) {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: req}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	sent, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?timeout=10s", bytes.NewReader(sent))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// Patched applies the patch of the decision to the object of the request, and returns the result. It fails the test if
// the patch does not apply.
func Patched[T any](t testing.TB, req *admissionv1.AdmissionRequest, decision *admissionv1.AdmissionResponse) *T {
	t.Helper()
	doc := req.Object.Raw
	if decision.Patch != nil {
		p, err := jsonpatch.DecodePatch(decision.Patch)
		if err == nil {
			doc, err = p.Apply(doc)
		}
		if err != nil {
			t.Fatalf("the patch does not apply: %v\n%s", err, decision.Patch)
		}
	}
	into := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, into); err != nil {
		t.Fatal(err)
	}
	return into
}
