// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func idle() webhook.Load { return webhook.Load{} }

// Every scrape must show the current load of each server that is registered.
func TestServerIsReadAtEachScrape(t *testing.T) {
	reg := prometheus.NewRegistry()
	load := webhook.Load{Calls: 5, MaxCalls: 10, Waiting: 3, Bytes: 4096, MaxBytes: 1 << 20, Connections: 7, MaxConnections: 20}
	if err := metrics.Server(reg, "hooks", func() webhook.Load { return load }); err != nil {
		t.Fatal(err)
	}
	none := webhook.Load{MaxCalls: math.MaxInt, MaxBytes: math.MaxInt64, MaxConnections: math.MaxInt}
	if err := metrics.Server(reg, "other", func() webhook.Load { return none }); err != nil {
		t.Fatal(err)
	}
	series := func(server string, values map[string]float64) map[string]float64 {
		all := map[string]float64{}
		for name, value := range values {
			all[fmt.Sprintf("admitkit_server_%s{server=%q}", name, server)] = value
		}
		return all
	}
	got := scrape(t, reg)
	check(t, got, series("hooks", map[string]float64{
		"calls": 5, "calls_waiting": 3, "calls_limit": 10, "body_bytes": 4096, "body_bytes_limit": 1 << 20, "connections": 7, "connections_limit": 20,
	}))
	check(t, got, series("other", map[string]float64{
		"calls": 0, "calls_waiting": 0, "calls_limit": math.Inf(1), "body_bytes": 0, "body_bytes_limit": math.Inf(1), "connections": 0, "connections_limit": math.Inf(1),
	}))
	if len(got) != 14 {
		t.Errorf("%d series: %v", len(got), got)
	}
	load.Calls = 6
	check(t, scrape(t, reg), series("hooks", map[string]float64{"calls": 6}))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %+v", err, problems)
	}
}

func TestRegisteringAServer(t *testing.T) {
	twice, taken := prometheus.NewRegistry(), prometheus.NewRegistry()
	if err := metrics.Server(twice, "hooks", idle); err != nil {
		t.Fatal(err)
	}
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "admitkit_server_calls", Help: "Of another package."}))
	rows := []struct {
		why  string
		reg  prometheus.Registerer
		load func() webhook.Load
		want string
	}{
		{"no registry", nil, idle, "needs a registry and the Load of a server"},
		{"no server", prometheus.NewRegistry(), nil, "needs a registry and the Load of a server"},
		{"the name is taken", twice, idle, `the registry already has the server "hooks": give each server its own name`},
		{"a metric is taken", taken, idle, `cannot register the server "hooks": `},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			if err := metrics.Server(row.reg, "hooks", row.load); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want …%s…", err, row.want)
			}
		})
	}
}
