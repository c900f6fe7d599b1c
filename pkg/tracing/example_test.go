// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/tracing"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A hook continues the trace of the API server. The provider decides where spans are exported.
func ExampleNew() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "owned.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Object.Labels["owner"] == "" {
			return webhook.Deny("a Pod needs the label owner")
		}
		return nil
	}).WithObserver(tracing.New(provider, tracing.Options{})) // or Options.Observers of a webhook.Server

	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":{"metadata":{"name":"web"}}}}`
	call := httptest.NewRequest(http.MethodPost, hook.Path(), strings.NewReader(review))
	call.Header.Set("Content-Type", "application/json")
	call.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	hook.ServeHTTP(httptest.NewRecorder(), call)

	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, "in the trace", span.SpanContext.TraceID())
		for _, a := range span.Attributes {
			if a.Key == "admission.outcome" {
				fmt.Println("outcome:", a.Value.AsString())
			}
		}
		fmt.Println("status:", span.Status.Code)
	}
	// Output:
	// owned.example.com in the trace 0af7651916cd43dd8448eb211c80319c
	// outcome: denied
	// status: Unset
}
