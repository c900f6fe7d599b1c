// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// TestLinuxOnlyPartIsAdvice tests a webhook that adds a sidecar with runAsUser, which is illegal in Windows Pods. The
// finding must be advice, not a failure.
func TestLinuxOnlyPartIsAdvice(t *testing.T) {
	subject := editing("", "v1", "pods", onCreate, func(_ *admissionv1.AdmissionRequest, doc document) {
		spec := at(doc, "spec")
		containers, _ := spec["containers"].([]any)
		initial, _ := spec["initContainers"].([]any)
		if !slices.ContainsFunc(slices.Concat(containers, initial), func(c any) bool { return c.(document)["name"] == "agent" }) {
			spec["containers"] = append(containers, document{"name": "agent", "image": "agent:v1", "securityContext": document{"runAsUser": 1337}})
		}
	})
	report, err := Run(t.Context(), subject, Options{Objects: 4})
	if err != nil || !report.OK() {
		t.Fatalf("%v\n%s", err, text(report))
	}
	if !slices.ContainsFunc(report.Findings, func(v *Violation) bool {
		return v.Law == L1 && v.Verdict == Advice && v.FailureMode == FailureInvalidOnWindows
	}) {
		t.Errorf("nothing is said about Windows:\n%s", text(report))
	}
}
