// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// This example serves the metrics of a hook from their own registry. The series of a known hook exist from the start,
// with the value zero.
func Example() {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "owned.example.com",
		Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Object.Labels["owner"] == "" {
			return webhook.Deny("a Pod needs the label owner")
		}
		return nil
	})
	registry := prometheus.NewRegistry()
	observed, err := metrics.New(registry, metrics.Options{Hooks: []*webhook.Hook{hook}})
	if err != nil {
		fmt.Println(err)
		return
	}
	hook = hook.WithObserver(observed) // or Options.Observers of a webhook.Server, for all of its hooks

	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":{"metadata":{"name":"web"}}}}`
	call := httptest.NewRequest(http.MethodPost, hook.Path(), strings.NewReader(review))
	call.Header.Set("Content-Type", "application/json")
	hook.ServeHTTP(httptest.NewRecorder(), call)

	scraped := httptest.NewRecorder() // Options.Metrics of a webhook.Server serves this
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scraped.Body.String()) {
		if strings.HasPrefix(line, "admitkit_calls_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// admitkit_calls_total{outcome="allowed",type="validating",webhook="owned.example.com"} 0
	// admitkit_calls_total{outcome="canceled",type="validating",webhook="owned.example.com"} 0
	// admitkit_calls_total{outcome="denied",type="validating",webhook="owned.example.com"} 1
	// admitkit_calls_total{outcome="failed",type="validating",webhook="owned.example.com"} 0
	// admitkit_calls_total{outcome="panicked",type="validating",webhook="owned.example.com"} 0
	// admitkit_calls_total{outcome="refused",type="validating",webhook="owned.example.com"} 0
	// admitkit_calls_total{outcome="shed",type="validating",webhook="owned.example.com"} 0
	// admitkit_calls_total{outcome="timed_out",type="validating",webhook="owned.example.com"} 0
}
