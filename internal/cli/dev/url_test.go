// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/tools/clientcmd"
)

const twoWebhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: other
webhooks:
- name: first.example.com
  clientConfig: {service: {namespace: shop, name: other, path: /first}}
  reinvocationPolicy: IfNeeded
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
- name: second.example.com
  clientConfig: {service: {namespace: shop, name: other, path: /second}}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`

const widgets = `apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sample, namespace: shop}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`

// TestURL runs dev for a webhook at a URL. It checks that dev reports reinvocations, and that dev applies definitions
// and namespaces before the objects that need them.
func TestURL(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var review admissionv1.AdmissionReview
		if err != nil || json.Unmarshal(body, &review) != nil {
			return // the probe of dev, which sends no AdmissionReview
		}
		patch := fmt.Sprintf(`[{"op":"add","path":"/data","value":{%q:"x"}}]`, strings.TrimPrefix(r.URL.Path, "/"))
		var o struct{ Data map[string]string }
		if err := json.Unmarshal(review.Request.Object.Raw, &o); err != nil || len(o.Data) > 0 {
			patch = fmt.Sprintf(`[{"op":"add","path":"/data/%s","value":"x"}]`, strings.TrimPrefix(r.URL.Path, "/"))
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: &kind}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "webhooks.yaml"), twoWebhooks)
	write(t, filepath.Join(dir, "samples", "all.yaml"), widgets)
	r := begin(t, Options{URL: web.URL, Files: []string{filepath.Join(dir, "webhooks.yaml")}, Apply: []string{filepath.Join(dir, "samples")}})
	ready := r.out.next(t, "ready", event("ready"))
	var seen []string
	for len(seen) < 3 {
		a := r.out.next(t, "admission", event("admission"))
		seen = append(seen, fmt.Sprintf("%s %s/%s %s %d", a.Webhook, a.Namespace, a.Name, a.Outcome, a.Round))
	}
	want := []string{"first.example.com shop/sample mutated 1", "second.example.com shop/sample mutated 1", "first.example.com shop/sample mutated 2"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	config, err := clientcmd.BuildConfigFromFlags("", ready.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if names := configurations(t, clientFor(t, config)); len(names) != 1 || names[0] != "other" {
		t.Errorf("the order of names is that of the calls, so it is kept: %v", names)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if text := r.out.String() + r.err.String(); strings.Contains(text, "applyFailed") {
		t.Error(text)
	}
}
