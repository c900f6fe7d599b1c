// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// annotating is a webhook that sees to one annotation of Pods.
func annotating(name string) Subject {
	s := editing("", "v1", "pods", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
		meta := doc["metadata"].(document)
		annotations, _ := meta["annotations"].(document)
		if annotations == nil {
			annotations = document{}
			meta["annotations"] = annotations
		}
		if annotations[name] == nil {
			annotations[name] = "yes"
		}
	})
	s.webhooks[0].Name = name
	return s
}

// The second webhook gets what the first one left, with the fields that no Go type has.
func TestTogetherIsClean(t *testing.T) {
	report, err := Run(t.Context(), Together(annotating("a.example.com"), annotating("b.example.com")), Objects(6))
	if err != nil || !report.OK() || report.Incomplete != "" {
		t.Errorf("%v:\n%s", err, text(report))
	}
}
