// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/metrics"
)

// A fixed source always has the same status.
type fixed struct{ status certs.Status }

func (*fixed) Start(context.Context) error { return nil }
func (*fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("none")
}
func (*fixed) Bundle() []byte         { return nil }
func (f *fixed) Status() certs.Status { return f.status }

func TestSource(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 500e6) }
	rows := []struct {
		why    string
		status certs.Status
		want   map[string]float64 // all series, without the prefix and the label source
	}{
		{"nothing yet", certs.Status{Err: errors.New("no certificate yet"), Phase: certs.Starting}, map[string]float64{
			"healthy": 0, "trusted": 0, "renewals_total": 0, "rotations_total": 0,
			"phase=starting": 1, "phase=stable": 0, "phase=publishing": 0, "phase=retiring": 0, "clock_ahead_seconds": 0,
		}},
		{"a file, whose CA is not known", certs.Status{NotBefore: at(1), NotAfter: at(2000000000), Trusted: true, Renewals: 3}, map[string]float64{
			"healthy": 1, "trusted": 1, "renewals_total": 3, "rotations_total": 0, "not_before_timestamp_seconds": 1.5, "not_after_timestamp_seconds": 2000000000.5,
		}},
		{"a rotation", certs.Status{NotBefore: at(1), NotAfter: at(2), CANotAfter: at(3), Phase: certs.Retiring, Trusted: true, Renewals: 9, Rotations: 2, ClockAhead: -90 * time.Second}, map[string]float64{
			"healthy": 1, "trusted": 1, "renewals_total": 9, "rotations_total": 2,
			"not_before_timestamp_seconds": 1.5, "not_after_timestamp_seconds": 2.5, "ca_not_after_timestamp_seconds": 3.5,
			"phase=starting": 0, "phase=stable": 0, "phase=publishing": 0, "phase=retiring": 1, "clock_ahead_seconds": -90,
		}},
		{"unhealthy, but trusted", certs.Status{Err: errors.New("file: gone"), NotAfter: at(2), Trusted: true}, map[string]float64{
			"healthy": 0, "trusted": 1, "renewals_total": 0, "rotations_total": 0, "not_after_timestamp_seconds": 2.5,
		}},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			if err := metrics.Source(reg, "serving", &fixed{row.status}); err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{}
			for name, value := range row.want {
				series := fmt.Sprintf("admitkit_certificate_%s{source=%q}", name, "serving")
				if phase, ok := strings.CutPrefix(name, "phase="); ok {
					series = fmt.Sprintf("admitkit_certificate_rotation_phase{phase=%q,source=%q}", phase, "serving")
				}
				want[series] = value
			}
			got := scrape(t, reg)
			if check(t, got, want); len(got) != len(want) {
				t.Errorf("%d series, want %d: %v", len(got), len(want), got)
			}
		})
	}
}

// For every phase of package certs, a scrape must show that phase as the current one.
func TestEveryPhaseIsShown(t *testing.T) {
	for _, phase := range constants(t, "certs", "Phase") {
		source, reg := &fixed{certs.Status{Phase: certs.Phase(phase)}}, prometheus.NewRegistry()
		if err := metrics.Source(reg, "serving", source); err != nil {
			t.Fatal(err)
		}
		got := scrape(t, reg)
		check(t, got, map[string]float64{fmt.Sprintf("admitkit_certificate_rotation_phase{phase=%q,source=%q}", phase, "serving"): 1})
		var sum float64
		for _, name := range about(got, "rotation_phase") {
			sum += got[name]
		}
		if sum != 1 {
			t.Errorf("in phase %s %v phases are shown", phase, sum)
		}
	}
}

// A scrape must show the current status of a source, and not its status at registration.
func TestSourceIsReadAtEachScrape(t *testing.T) {
	source, reg := &fixed{}, prometheus.NewRegistry()
	if err := metrics.Source(reg, "serving", source); err != nil {
		t.Fatal(err)
	}
	check(t, scrape(t, reg), map[string]float64{`admitkit_certificate_trusted{source="serving"}`: 0})
	source.status.Trusted = true
	check(t, scrape(t, reg), map[string]float64{`admitkit_certificate_trusted{source="serving"}`: 1})
}

func TestSeveralSources(t *testing.T) {
	reg := prometheus.NewRegistry()
	for _, name := range []string{"serving", "client"} {
		if err := metrics.Source(reg, name, &fixed{certs.Status{Trusted: name == "client"}}); err != nil {
			t.Fatal(err)
		}
	}
	newMetrics(t, reg, metrics.Options{})
	check(t, scrape(t, reg), map[string]float64{
		`admitkit_certificate_trusted{source="serving"}`: 0,
		`admitkit_certificate_trusted{source="client"}`:  1,
	})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %+v", err, problems)
	}
}

func TestRegisteringASource(t *testing.T) {
	twice, taken := prometheus.NewRegistry(), prometheus.NewRegistry()
	if err := metrics.Source(twice, "serving", &fixed{}); err != nil {
		t.Fatal(err)
	}
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "admitkit_certificate_trusted", Help: "Of another package."}))
	rows := []struct {
		why    string
		reg    prometheus.Registerer
		name   string
		source certs.Source
		want   string
	}{
		{"no registry", nil, "serving", &fixed{}, "needs a registry and a certificate source"},
		{"no source", prometheus.NewRegistry(), "serving", nil, "needs a registry and a certificate source"},
		{"the name is taken", twice, "serving", &fixed{}, `the registry already has the certificate source "serving": give each source its own name`},
		{"a metric is taken", taken, "serving", &fixed{}, `cannot register the certificate source "serving": `},
		{"a name that is not text", prometheus.NewRegistry(), "\xff", &fixed{}, `cannot register the certificate source "\xff": `},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			if err := metrics.Source(row.reg, row.name, row.source); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want …%s…", err, row.want)
			}
		})
	}
}
