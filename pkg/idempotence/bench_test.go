// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"runtime/debug"
	"testing"

	"github.com/admitkit/admitkit/test/corpus"
)

// BenchmarkRun measures a run with default options on a small correct webhook for Pods.
func BenchmarkRun(b *testing.B) {
	var c corpus.Case
	for _, c = range corpus.Lookalikes() {
		if c.Name == "P01 append if absent" {
			break
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // Go's default, as in the tests of users
	checks := 0
	for b.Loop() {
		report, err := Run(b.Context(), Handler(c.Webhook, c.New), Options{})
		if err != nil || !report.OK() {
			b.Fatal(report, err)
		}
		checks += report.Checks
	}
	b.ReportMetric(float64(checks)/b.Elapsed().Seconds(), "checks/s")
}
