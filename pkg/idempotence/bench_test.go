// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"runtime/debug"
	"testing"

	"github.com/admitkit/admitkit/internal/bugs"
)

// BenchmarkRun tests a small webhook for Pods as Check does by default.
func BenchmarkRun(b *testing.B) {
	var c bugs.Case
	for _, c = range bugs.Lookalikes() {
		if c.Name == "P01 append if absent" {
			break
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in the tests of users
	checks := 0
	for b.Loop() {
		report, err := Run(b.Context(), Handler(c.Webhook, c.New))
		if err != nil || !report.OK() {
			b.Fatal(report, err)
		}
		checks += report.Checks
	}
	b.ReportMetric(float64(checks)/b.Elapsed().Seconds(), "checks/s")
}
