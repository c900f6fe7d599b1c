// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func BenchmarkCall(b *testing.B) {
	rows := map[string]metrics.Options{
		"plain":    {},
		"exemplar": {TraceID: func(context.Context) string { return "0af7651916cd43dd8448eb211c80319c" }},
	}
	for name, options := range rows {
		for _, outcome := range []webhook.Outcome{webhook.Allowed, webhook.Mutated} {
			b.Run(fmt.Sprintf("%s/%s", name, outcome), func(b *testing.B) {
				m := newMetrics(b, prometheus.NewRegistry(), options)
				hook, r, ctx := mutating("a.example.com"), &http.Request{}, b.Context()
				call := webhook.Observation{Outcome: outcome, BodyBytes: 2000, PatchBytes: 100, PatchOperations: 2}
				b.ReportAllocs()
				for i := range b.N {
					call.Duration = time.Duration(i%1000) * 10 * time.Microsecond
					_, end := m.Begin(ctx, hook, r)
					end(&call)
				}
			})
		}
	}
}

// BenchmarkHook measures what observers add to a call with a small object.
func BenchmarkHook(b *testing.B) {
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "a.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))}, decideByName)
	rows := map[string]*webhook.Hook{
		"alone":    hook,
		"observed": hook.WithObserver(newMetrics(b, prometheus.NewRegistry(), metrics.Options{})),
	}
	for name, hook := range rows {
		for _, object := range []string{"allowed", "mutated"} {
			b.Run(name+"/"+object, func(b *testing.B) {
				body := strings.NewReader(reviewOf(object))
				r := httptest.NewRequest(http.MethodPost, hook.Path(), body)
				r.Header.Set("Content-Type", "application/json")
				b.ReportAllocs()
				for b.Loop() {
					body.Reset(reviewOf(object))
					w := httptest.NewRecorder()
					if hook.ServeHTTP(w, r); w.Code != http.StatusOK {
						b.Fatal(w.Body)
					}
				}
			})
		}
	}
}
