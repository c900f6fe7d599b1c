// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"net/http"
	"net/http/httptest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestTraceOfAPanic checks that the trace of a panic begins where the hook panicked, has a line for each frame, and
// ends before the code of admitkit.
func TestTraceOfAPanic(t *testing.T) {
	var log bytes.Buffer
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error { return panics(req.Object) })
	review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create}}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	review.Request.Kind.Version, review.Request.Kind.Kind = "v1", "Pod"
	review.Request.Resource.Version, review.Request.Resource.Resource = "v1", "pods"
	review.Request.Object.Raw = []byte(`{"apiVersion":"v1","kind":"Pod"}`)
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(logr.NewContext(t.Context(), logr.FromSlogHandler(newTraceHandler(&log))), http.MethodPost, hook.Path(), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	hook.ServeHTTP(httptest.NewRecorder(), r)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "the handler panicked") || strings.Contains(lines[0], "stack=") {
		t.Fatalf("the log is\n%s", log.String())
	}
	for i, want := range []string{"log_test.go", "log_test.go"} {
		if !strings.HasPrefix(lines[i+1], "    at ") || !strings.Contains(lines[i+1], want) {
			t.Errorf("frame %d is %q", i, lines[i+1])
		}
	}
	if !strings.Contains(lines[1], "panics(") {
		t.Errorf("the first frame is not that of the panic: %q", lines[1])
	}
}

func panics(pod *corev1.Pod) error {
	return error(nil).(interface{ Of(*corev1.Pod) error }).Of(pod)
}
