// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// FuzzHook sends any body to mutating hooks for a built-in type, for unstructured and for a
// projection, and to a validating hook. The answer must be a Status, or a review that the API
// server accepts, with a patch that applies and makes the handler's changes.
func FuzzHook(f *testing.F) {
	for _, c := range seeds {
		for _, version := range versions {
			c.version = version
			f.Add(c.body(), "application/json", "5s")
		}
	}
	for _, in := range badInputs {
		f.Add(in.body, in.contentType, "")
	}
	for _, object := range hostile {
		f.Add(call{object: object(3)}.body(), "application/json; charset=utf-8", "1ms")
	}
	hooks := []fuzzed{
		fuzzedWith(fuzzPod, func(p *corev1.Pod) any { return p }),
		fuzzedWith(fuzzUnstructured, func(u *unstructured.Unstructured) any { return &u.Object }),
		fuzzedWith(fuzzProjection, func(p *podImages) any { return p }),
	}
	quiet := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "fuzz.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			old, err := req.OldObject()
			req.UnknownFields()
			if err == nil && old != nil && old.Name == "deny" {
				return webhook.Deny("no")
			}
			return errors.Join(err, req.DecodeOptions(&metav1.DeleteOptions{}))
		}).WithMaxBodyBytes(1 << 20)
	f.Fuzz(func(t *testing.T, body []byte, contentType, timeout string) {
		query := "?timeout=" + url.QueryEscape(timeout)
		for _, hook := range hooks {
			hook(t, query, contentType, body)
		}
		admittedRequest(t, post(t, quiet, query, contentType, bytes.NewReader(body)), body, false)
	})
}

var seeds = []call{
	{},
	{object: `{"metadata":null,"spec":{"containers":[{"name":"a"},{"name":"b","new":[]},null]},"new":{"a/b~c":-0.0}}`},
	{object: `{"metadata":{"name":"deny","namespace":"shop","labels":{"fuzz":"no"}},"spec":{"containers":[{"image":"x","image":"y"}]}}`},
	{operation: admissionv1.Update, object: thePod, oldObject: `{"metadata":{"name":"deny"}}`, options: `{"gracePeriodSeconds":1}`},
	{operation: admissionv1.Delete, oldObject: thePod},
	{operation: admissionv1.Connect, kind: "/v1/PodExecOptions", sub: "exec", object: `{"command":["sh"]}`},
	{kind: "example.com/v1/Widget", resource: "example.com/v1/widgets", object: theWidget},
	{object: "{\"metadata\":{\"name\":\"\xff\",\"labels\":{\"\xc3\":\"\\ud800\"}},\"spec\":{\"containers\":[]}}"},
}

func fuzzPod(pod *corev1.Pod) error {
	switch pod.Labels["fuzz"] {
	case "no":
		return webhook.Deny("no")
	case "panic":
		panic("yes")
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["a/b~c"] = "1"
	delete(pod.Labels, "fuzz")
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image += ":1"
	}
	pod.Spec.Containers = append([]corev1.Container{{Name: "first"}}, pod.Spec.Containers...)
	return nil
}

func fuzzUnstructured(u *unstructured.Unstructured) error {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "containers")
	if err := unstructured.SetNestedSlice(u.Object, append(list, map[string]any{"name": "last", "n": int64(1 << 60)}), "spec", "containers"); err != nil {
		return err
	}
	delete(u.Object, "status")
	return unstructured.SetNestedField(u.Object, "yes", "metadata", "labels", "seen")
}

func fuzzProjection(p *podImages) error {
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Image = "mirror/" + p.Spec.Containers[i].Image
	}
	if n := len(p.Spec.Containers); n > 1 {
		p.Spec.Containers = p.Spec.Containers[:n-1]
	}
	return nil
}

type fuzzed func(t *testing.T, query, contentType string, body []byte)

// fuzzedWith returns a function that calls a mutating hook and checks that the patch makes the same change as mutate.
func fuzzedWith[T any](mutate func(*T) error, content func(*T) any) fuzzed {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "fuzz.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error {
			if req.Object == nil {
				return nil
			}
			return mutate(req.Object)
		}).WithMaxBodyBytes(1 << 20)
	decode := func(t *testing.T, raw []byte) *T {
		into := new(T)
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, content(into)); err != nil {
			t.Fatalf("%v: %q", err, raw)
		}
		return into
	}
	return func(t *testing.T, query, contentType string, body []byte) {
		a := post(t, hook, query, contentType, bytes.NewReader(body))
		req, ops := admittedRequest(t, a, body, true)
		if req == nil || req.Object == nil {
			return
		}
		patched := req.Object
		if ops != nil {
			p, err := jsonpatch.DecodePatch(ops)
			if err == nil {
				patched, err = p.Apply(req.Object)
			}
			if err != nil {
				t.Fatalf("%v: %s on %q", err, ops, req.Object)
			}
		}
		wanted := decode(t, req.Object)
		if err := mutate(wanted); err != nil {
			t.Fatalf("admitted what was denied: %v", err)
		}
		got, want := marshal(t, content(decode(t, patched))), marshal(t, content(wanted))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s on %q\n got %v\nwant %v", ops, req.Object, got, want)
		}
	}
}

// admittedRequest returns the request and the patch of an admitted call.
func admittedRequest(t *testing.T, a answer, body []byte, isMutating bool) (*review.Request, []byte) {
	t.Helper()
	if a.code != http.StatusOK {
		a.failed(t)
		return nil, nil
	}
	req, err := review.Decode(body)
	if err != nil {
		t.Fatalf("answered %s to what is not a review: %v", a.body, err)
	}
	response := a.accepted(t, call{version: req.Version, uid: string(req.UID)}, isMutating)
	if !response.Allowed {
		return nil, nil
	}
	if response.Patch != nil && (req.Object == nil || !isMutating) {
		t.Fatalf("a patch for nothing: %s", response.Patch)
	}
	return req, response.Patch
}

// marshal encodes v as JSON and decodes the JSON into maps, slices and scalars.
func marshal(t *testing.T, v any) (plain any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
