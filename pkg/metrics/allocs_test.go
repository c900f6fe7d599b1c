// SPDX-License-Identifier: Apache-2.0

//go:build !race

package metrics_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Observed calls must not allocate memory. The first call is an exception, because a native histogram allocates a
// bucket for the first value in it.
func TestAllocs(t *testing.T) {
	m := newMetrics(t, prometheus.NewRegistry(), metrics.Options{})
	hook, r, ctx := mutating("a.example.com"), &http.Request{}, t.Context()
	call := webhook.Observation{Outcome: webhook.Mutated, Duration: time.Millisecond, BodyBytes: 2000, PatchBytes: 100, PatchOperations: 2}
	n := testing.AllocsPerRun(1000, func() {
		_, end := m.Begin(ctx, hook, r)
		end(&call)
	})
	if n > 0 {
		t.Errorf("an observed call allocates %v times", n)
	}
}
