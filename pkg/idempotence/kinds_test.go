// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// A document is a decoded JSON object.
type document = map[string]any

// editing returns a webhook for a resource. It calls edit on the object, and responds with a patch of the top-level
// members that changed.
func editing(group, version, resource string, operations []admissionregistrationv1.OperationType, edit func(r *admissionv1.AdmissionRequest, doc document)) Subject {
	return patching(group, version, resource, operations, func(r *admissionv1.AdmissionRequest) []operation {
		doc := decoded(r.Object.Raw)
		before, _ := json.Marshal(doc)
		edit(r, doc)
		return members(before, doc)
	})
}

// An operation is one operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patching returns a webhook for a resource. It responds with the operations that patch returns, if there are any.
func patching(group, version, resource string, operations []admissionregistrationv1.OperationType, patch func(*admissionv1.AdmissionRequest) []operation) Subject {
	return Handler(admissionregistrationv1.MutatingWebhook{
		Name: resource + ".kinds.example.com", AdmissionReviewVersions: []string{"v1"},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}},
	}, func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			var review admissionv1.AdmissionReview
			if json.Unmarshal(body, &review) != nil {
				http.Error(w, "not a review", http.StatusBadRequest)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
			if operations := patch(review.Request); len(operations) > 0 {
				review.Response.Patch, _ = json.Marshal(operations)
				review.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
			}
			review.Request = nil
			_ = json.NewEncoder(w).Encode(review)
		})
	})
}

func decoded(raw []byte) (doc document) {
	_ = json.Unmarshal(raw, &doc)
	return doc
}

// members returns a patch that sets the top-level members of doc that differ from those in before.
func members(before []byte, doc document) []operation {
	var old document
	_ = json.Unmarshal(before, &old)
	var patch []operation
	for name, value := range doc {
		a, _ := json.Marshal(old[name])
		b, _ := json.Marshal(value)
		if string(a) != string(b) {
			patch = append(patch, operation{"add", "/" + name, value})
		}
	}
	return patch
}

// at returns the object at the path that consists of names. It creates missing objects.
func at(doc document, names ...string) document {
	for _, name := range names {
		next, ok := doc[name].(document)
		if !ok {
			next = document{}
			doc[name] = next
		}
		doc = next
	}
	return doc
}

var (
	onCreate = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	onUpdate = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	onBoth   = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
)

func counted(_ *admissionv1.AdmissionRequest, doc document) {
	values := at(doc, "metadata", "annotations")
	text, _ := values["example.com/calls"].(string)
	n, _ := strconv.Atoi(text)
	values["example.com/calls"] = strconv.Itoa(n + 1)
}

func marked(_ *admissionv1.AdmissionRequest, doc document) {
	at(doc, "metadata", "annotations")["example.com/seen"] = "yes"
}

// appendedTo returns a function for editing. In each call, it appends an element to the named list in the object at the
// path.
func appendedTo(list string, element any, path ...string) func(*admissionv1.AdmissionRequest, document) {
	return func(_ *admissionv1.AdmissionRequest, doc document) {
		in := at(doc, path...)
		elements, _ := in[list].([]any)
		in[list] = append(elements, element)
	}
}

func gateway() runtime.Object {
	return &unstructured.Unstructured{Object: document{
		"apiVersion": "net.example.com/v1alpha1", "kind": "Gateway", "metadata": document{"name": "front"},
		"spec": document{"listeners": []any{document{"name": "http", "port": int64(80)}}, "hosts": []any{"a.example.com"}, "paused": false},
	}}
}

// TestOtherKindsAndOperations tests webhooks for kinds other than Pod and operations other than CREATE. A broken
// webhook must fail the expected law, and a correct one must pass all laws.
func TestOtherKindsAndOperations(t *testing.T) {
	type edit = func(*admissionv1.AdmissionRequest, document)
	for _, tt := range []struct {
		name       string
		group      string
		version    string
		resource   string
		operations []admissionregistrationv1.OperationType
		edit       edit
		samples    []runtime.Object
		broken     Law
	}{
		{"Pods, in updates only", "", "v1", "pods", onUpdate, marked, nil, ""},
		{"Pods, in updates only, counted", "", "v1", "pods", onUpdate, counted, nil, L1},
		{"ConfigMaps", "", "v1", "configmaps", onBoth, marked, nil, ""},
		{"ConfigMaps, data that grows", "", "v1", "configmaps", onBoth, func(_ *admissionv1.AdmissionRequest, doc document) {
			data := at(doc, "data")
			text, _ := data["agent"].(string)
			data["agent"] = text + "x"
		}, nil, L1},
		{"Secrets, the data replaced", "", "v1", "secrets", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
			if _, ok := at(doc, "data")["agent"]; !ok {
				doc["data"] = document{"agent": "eWVz"}
			}
		}, nil, L10},
		{"Services, a port twice", "", "v1", "services", onCreate, appendedTo("ports", document{"name": "agent", "port": 9090}, "spec"), nil, L1},
		{"Services, the selector replaced", "", "v1", "services", onBoth, func(_ *admissionv1.AdmissionRequest, doc document) {
			at(doc, "spec")["selector"] = document{"agent": "yes"}
		}, nil, L10},
		{"ServiceAccounts, a pull secret twice", "", "v1", "serviceaccounts", onCreate, appendedTo("imagePullSecrets", document{"name": "registry"}), nil, L1},
		{"Deployments, the selector in updates", "apps", "v1", "deployments", onBoth, func(_ *admissionv1.AdmissionRequest, doc document) {
			at(doc, "spec", "selector", "matchLabels")["agent"] = "yes"
			at(doc, "spec", "template", "metadata", "labels")["agent"] = "yes"
		}, nil, L6},
		{"CronJobs, a container twice", "batch", "v1", "cronjobs", onCreate,
			appendedTo("containers", document{"name": "agent", "image": "agent:v1"}, "spec", "jobTemplate", "spec", "template", "spec"), nil, L1},
		{"CronJobs", "batch", "v1", "cronjobs", onBoth, marked, nil, ""},
		{"custom resources", "net.example.com", "v1alpha1", "gateways", onBoth, marked, []runtime.Object{gateway()}, ""},
		{"custom resources, counted", "net.example.com", "v1alpha1", "gateways", onUpdate, counted, []runtime.Object{gateway()}, L1},
		{"custom resources, a list replaced", "net.example.com", "v1alpha1", "gateways", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
			at(doc, "spec")["hosts"] = []any{"agent.example.com"}
		}, []runtime.Object{gateway()}, L10},
		{"custom resources, a value that others may change", "net.example.com", "v1alpha1", "gateways", onBoth, func(_ *admissionv1.AdmissionRequest, doc document) {
			spec := at(doc, "spec")
			spec["paused"] = spec["paused"] != true
		}, []runtime.Object{gateway()}, L1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing(tt.group, tt.version, tt.resource, tt.operations, tt.edit), Options{Samples: tt.samples, Objects: 8})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Incomplete) > 0 {
				t.Errorf("incomplete: %s", report.Incomplete)
			}
			if tt.broken == "" && !report.OK() || tt.broken != "" && !slices.ContainsFunc(report.Findings, func(v *Violation) bool {
				return v.Law == tt.broken && v.Verdict != Advice
			}) {
				t.Errorf("want a violation of %q:\n%s", tt.broken, text(report))
			}
		})
	}
}

// TestUndefinedCustomResourceNeedsASample tests a webhook for custom resources without a definition or sample. Run must
// return an error, because the harness cannot generate objects.
func TestUndefinedCustomResourceNeedsASample(t *testing.T) {
	_, err := Run(t.Context(), editing("net.example.com", "v1alpha1", "gateways", onBoth, marked), Options{})
	if err == nil {
		t.Fatal("no error without a sample")
	}
}

// TestGeneratesUsualKinds tests a webhook for each of the usual kinds, without samples.
func TestGeneratesUsualKinds(t *testing.T) {
	for _, gvk := range usualKinds {
		resource := objects.KindOf(gvk).Resource
		t.Run(resource.Resource, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing(resource.Group, resource.Version, resource.Resource, onCreate, marked), Options{Objects: 4, Without: Laws[1:]})
			if err != nil {
				t.Fatal(err)
			}
			if report.Changed != 4 || len(report.Kinds) != 1 || !report.OK() {
				t.Errorf("%d of 4 objects are changed:\n%s", report.Changed, text(report))
			}
		})
	}
}
