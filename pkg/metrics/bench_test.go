// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
				call := webhook.Call{Outcome: outcome, BodyBytes: 2000, PatchBytes: 100, PatchOperations: 2}
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
