// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestUpdateFindingsAreWeighed tests webhooks for CREATE and UPDATE of a custom resource. Some of them do something
// harmless or intended in updates. Others look similar, but are broken: only these may have violations.
func TestUpdateFindingsAreWeighed(t *testing.T) {
	var drawn atomic.Int64
	atCreation := func(edit func(spec document)) change {
		return func(r *admissionv1.AdmissionRequest, doc document) {
			if r.Operation == admissionv1.Create {
				edit(at(doc, "spec"))
			}
		}
	}
	for _, tt := range []struct {
		name string
		edit change
		spec document // fields of the sample's spec
		want string   // the expected violations
	}{
		{"draws a name in place of an empty one", func(_ *admissionv1.AdmissionRequest, doc document) {
			if id := at(doc, "spec")["id"]; id == nil || id == "" {
				at(doc, "spec")["id"] = fmt.Sprint("id-", drawn.Add(1))
			}
		}, document{"id": ""}, "L6 regenerates"},
		{"draws names for the elements of each manifest", func(_ *admissionv1.AdmissionRequest, doc document) {
			forEach(at(doc, "spec")["env"], func(e document) {
				if e["value"] == nil {
					e["value"] = fmt.Sprint("id-", drawn.Add(1))
				}
			})
		}, document{"env": []any{document{"name": "a"}, document{"name": "b"}}}, "L6 not the same"},
		{"sets a default at creation", atCreation(func(spec document) {
			if spec["id"] == nil {
				spec["id"] = "default"
			}
		}), nil, ""},
		{"sets a default at creation, and encodes its type", func(r *admissionv1.AdmissionRequest, doc document) {
			at(doc, "status")
			atCreation(func(spec document) {
				if spec["id"] == nil {
					spec["id"] = "default"
				}
			})(r, doc)
		}, nil, ""},
		{"sets a default at creation, and marks updates", func(r *admissionv1.AdmissionRequest, doc document) {
			marked(r, doc)
			if spec := at(doc, "spec"); r.Operation == admissionv1.Create && spec["id"] == nil {
				spec["id"] = "default"
			}
		}, nil, "L6 lost by replace"},
		{"adds an element at creation", atCreation(func(spec document) {
			list, _ := spec["env"].([]any)
			if !slices.ContainsFunc(list, func(e any) bool { return e.(document)["name"] == "OWN" }) {
				spec["env"] = append(list, document{"name": "OWN", "value": "1"})
			}
		}), nil, "L6 lost by replace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sample := job().(*unstructured.Unstructured)
			for name, value := range tt.spec {
				sample.Object["spec"].(document)[name] = value
			}
			report, err := Run(t.Context(), editing("shop.example.com", "v1", "jobs", slices.Concat(onCreate, onUpdate), tt.edit), Options{
				Objects: 4, Samples: []runtime.Object{sample}, CRDs: []*apiextensionsv1.CustomResourceDefinition{jobCRD()},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(report); got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
				t.Errorf("violations %q, want %q:\n%s", got, tt.want, text(report))
			}
		})
	}
}
