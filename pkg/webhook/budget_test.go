// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestBudgetIsTheTimeoutLessATenth(t *testing.T) {
	for _, in := range []struct {
		reason, parameter string
		want              time.Duration
	}{
		{"the longest that the API server gives", "30s", 29 * time.Second},
		{"more than a registration may ask for", "2000000h", 29 * time.Second},
		{"a tenth", "5s", 4500 * time.Millisecond},
		{"a second at most", "12s", 11 * time.Second},
		{"a tenth of a second at least", "1s", 900 * time.Millisecond},
		{"but half of it at most", "150ms", 75 * time.Millisecond},
		{"no minimum", "1ns", 0},
		{"no parameter: timeoutSeconds", "", 6300 * time.Millisecond},
		{"not a duration: timeoutSeconds", "5", 6300 * time.Millisecond},
		{"zero: timeoutSeconds", "0s", 6300 * time.Millisecond},
		{"negative: timeoutSeconds", "-5s", 6300 * time.Millisecond},
	} {
		hook := Validating[struct{}](admissionregistrationv1.ValidatingWebhook{TimeoutSeconds: new(int32(7))}, nil)
		if got := hook.budget(parseTimeout(in.parameter)); got != in.want {
			t.Errorf("%s: %q leaves %s, want %s", in.reason, in.parameter, got, in.want)
		}
	}
}
