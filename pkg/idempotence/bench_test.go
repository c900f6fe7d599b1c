// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"net/http/httptest"
	"os"
	"runtime/debug"
	"testing"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/test/corpus"
)

// benchmarked returns a small correct webhook for Pods.
func benchmarked(b *testing.B) corpus.Case {
	b.Helper()
	for _, c := range corpus.Lookalikes() {
		if c.Name == "P01 append if absent" {
			return c
		}
	}
	b.Fatal("package corpus lacks the webhook")
	return corpus.Case{}
}

// benchmarkRun measures runs with 40 objects, the default.
func benchmarkRun(b *testing.B, subject Subject, options Options) {
	b.Helper()
	b.ReportAllocs()
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // Go's default, as in the tests of users
	checks := 0
	for b.Loop() {
		report, err := Run(b.Context(), subject, options)
		if err != nil || !report.OK() {
			b.Fatal(report, err)
		}
		checks += report.Checks
	}
	b.ReportMetric(float64(checks)/b.Elapsed().Seconds(), "checks/s")
}

// BenchmarkRun measures runs on a webhook in this process.
func BenchmarkRun(b *testing.B) {
	c := benchmarked(b)
	benchmarkRun(b, Handler(c.Webhook, c.New), Options{})
}

// BenchmarkRunByURL measures runs on a server, without and with a real API server that defaults and validates the
// objects.
func BenchmarkRunByURL(b *testing.B) {
	c := benchmarked(b)
	server := httptest.NewTLSServer(c.New())
	defer server.Close()
	subject := URL(c.Webhook, server.Client(), server.URL)
	b.Run("model", func(b *testing.B) { benchmarkRun(b, subject, Options{}) })
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		b.Run("API server", func(b *testing.B) {
			benchmarkRun(b, subject, Options{APIServer: apiservertest.Start(b, nil).Config})
		})
	}
}
