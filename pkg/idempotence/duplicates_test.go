// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// TestDuplicatesInListsWithoutKeys tests webhooks that add a toleration and record this in an annotation. One of them
// adds the toleration again if another party removes the annotation. The other looks for the toleration and must pass.
func TestDuplicatesInListsWithoutKeys(t *testing.T) {
	adding := func(looks bool) func(*admissionv1.AdmissionRequest, document) {
		return func(_ *admissionv1.AdmissionRequest, doc document) {
			annotations, spec := at(doc, "metadata", "annotations"), at(doc, "spec")
			list, _ := spec["tolerations"].([]any)
			if annotations["example.com/done"] != nil || looks && hasToleration(list) {
				return
			}
			annotations["example.com/done"] = "yes"
			spec["tolerations"] = append(list, document{"key": "example.com/spot", "operator": "Exists"})
		}
	}
	without := slices.DeleteFunc(slices.Clone(Laws), func(l Law) bool { return l == L4a })
	for name, tc := range map[string]struct {
		looks  bool
		broken Law
	}{"trusts its annotation": {false, L4a}, "looks for the toleration": {true, ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("", "v1", "pods", onCreate, adding(tc.looks)), Options{Objects: 4, Without: without})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, report, tc.broken)
			for _, v := range report.Findings {
				if !strings.Contains(v.Summary, "spec.tolerations has") || !strings.HasSuffix(v.Summary, "twice") {
					t.Errorf("the finding does not name the list: %s", v.Summary)
				}
			}
		})
	}
}

func hasToleration(list []any) bool {
	for _, t := range list {
		if t.(document)["key"] == "example.com/spot" {
			return true
		}
	}
	return false
}
