// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// TestFindingNamesTheWebhookThatNeverSettles tests a webhook with a rival. One or both of them change the object in
// every call. The finding about L12 must name those that do, and show their changes.
func TestFindingNamesTheWebhookThatNeverSettles(t *testing.T) {
	named := func(name string, edit func(*admissionv1.AdmissionRequest, document)) Subject {
		s := editing("", "v1", "configmaps", onCreate, edit)
		s.webhooks[0].Name = name
		return s
	}
	grows := func(_ *admissionv1.AdmissionRequest, doc document) { doc["data"] = document{"n": counter(doc)} }
	flips := func(to string) func(*admissionv1.AdmissionRequest, document) {
		return func(_ *admissionv1.AdmissionRequest, doc document) { doc["data"] = document{"owner": to} }
	}
	for _, tt := range []struct {
		name             string
		subject, rival   func(*admissionv1.AdmissionRequest, document)
		says, difference string
		calls            int
	}{
		{"the webhook alone", grows, marked, "the webhook changes the object in every call, but the webhook", "data", 2}, // the rival is simulated
		{"the other alone", marked, grows, "the webhook \"rival.example.com\" changes the object in every call, but this one", "data", 4},
		{"both", flips("a"), flips("b"), "change the object in turns forever", "data", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := Run(t.Context(), named("subject.example.com", tt.subject), Options{Rivals: []Subject{named("rival.example.com", tt.rival)}, Objects: 3, Without: []Law{L1, L2, L3, L4a, L4b, L5, L6, L7, L8, L9, L10, L11}})
			if err != nil || len(report.Findings) != 1 {
				t.Fatalf("%v:\n%s", err, text(report))
			}
			v := report.Findings[0]
			if !strings.Contains(v.Summary, tt.says) || !strings.Contains(v.Summary, ": "+tt.difference) || len(v.Calls) != tt.calls {
				t.Errorf("%d calls: %s", len(v.Calls), v.Summary)
			}
			if v.Difference == nil || !strings.HasPrefix(v.Difference.Changes[0].Path, tt.difference) {
				t.Errorf("the difference is %+v", v.Difference)
			}
		})
	}
}
