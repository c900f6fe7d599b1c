// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"
)

func TestAnswerThatIsNoReviewIsDescribed(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "the answer has no apiVersion and no kind, want AdmissionReview of admission.k8s.io/v1",
		`"apiVersion":"admission.k8s.io/v1",`: "the answer has no kind, want",
		`"kind":"AdmissionReview",`:           "the answer has the kind AdmissionReview and no apiVersion, want",
		`"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",`: "the answer has the kind AdmissionReview of admission.k8s.io/v1beta1, want",
	} {
		var a Answer
		a.read(Query{Version: "v1"}, "1", []byte(`{`+in+`"response":{"uid":"1","allowed":true}}`))
		if !strings.HasPrefix(a.Fault, want) {
			t.Errorf("%s: got %q, want %q", in, a.Fault, want)
		}
	}
}
