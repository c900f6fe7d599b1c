// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// An exception also covers the API server's errors about its field.
func TestExceptionsForProblems(t *testing.T) {
	edit := func(_ *admissionv1.AdmissionRequest, doc document) {
		at(doc, "spec")["containers"].([]any)[0].(document)["imagePullPolicy"] = "Sometimes"
	}
	for path, broken := range map[string]Law{
		"spec.containers.imagePullPolicy":    "",
		"spec.containers[*].imagePullPolicy": "",
		"spec.containers":                    "",
		"spec.containers.image":              L1,
		"spec.containers[name=none]":         L1,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			report, err := Run(t.Context(), editing("", "v1", "pods", onCreate, edit), Options{Objects: 4, Exceptions: []Exception{{Path: path, Reason: "for another"}}})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, report, broken)
		})
	}
}
