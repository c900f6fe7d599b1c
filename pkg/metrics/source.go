// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/certs"
)

// Source registers metrics of a certificate source on reg. They are read at each scrape. The label "source" of the
// metrics has the value name, which must be unique in the registry.
func Source(reg prometheus.Registerer, name string, source certs.Source) error {
	if reg == nil || source == nil {
		return errors.New("metrics: Source needs a registry and a certificate source")
	}
	return register(reg, newSourceCollector(name, source), fmt.Sprintf("the certificate source %q", name), "give each source its own name")
}

// A sourceCollector reads the status of a source once for each scrape.
type sourceCollector struct {
	source                          certs.Source
	notBefore, notAfter, caNotAfter *prometheus.Desc
	healthy, trusted, phase         *prometheus.Desc
	renewals, rotations, clockAhead *prometheus.Desc
}

// phases lists the phases of a rotation. A test compares it with the constants of package certs.
var phases = []certs.Phase{certs.Starting, certs.Stable, certs.Publishing, certs.Retiring}

func newSourceCollector(name string, source certs.Source) *sourceCollector {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("admitkit_certificate_"+metric, help, labels, prometheus.Labels{"source": name})
	}
	return &sourceCollector{
		source:     source,
		notBefore:  desc("not_before_timestamp_seconds", "Start of the validity of the serving certificate."),
		notAfter:   desc("not_after_timestamp_seconds", "Expiry of the serving certificate."),
		caNotAfter: desc("ca_not_after_timestamp_seconds", "Expiry of the CA that signed the serving certificate."),
		healthy:    desc("healthy", "1 if the source has no error, otherwise 0."),
		trusted:    desc("trusted", "1 if every caBundle that the source maintains trusts the serving certificate, otherwise 0."),
		phase:      desc("rotation_phase", "1 for the current phase of the CA rotation, 0 for the others.", "phase"),
		renewals:   desc("renewals_total", "Serving certificates that replaced an earlier one in this process."),
		rotations:  desc("rotations_total", "CA replacements that this process has seen."),
		clockAhead: desc("clock_ahead_seconds", "Time by which the clock of this machine is ahead of the API server's, negative if it is behind."),
	}
}

func (c *sourceCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.notBefore, c.notAfter, c.caNotAfter, c.healthy, c.trusted, c.phase, c.renewals, c.rotations, c.clockAhead} {
		descs <- d
	}
}

func (c *sourceCollector) Collect(metrics chan<- prometheus.Metric) {
	s := c.source.Status()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	instant := func(d *prometheus.Desc, at time.Time) {
		if !at.IsZero() { // an unknown time must not be exported as the year 1
			gauge(d, float64(at.UnixMilli())/1000)
		}
	}
	instant(c.notBefore, s.NotBefore)
	instant(c.notAfter, s.NotAfter)
	instant(c.caNotAfter, s.CANotAfter)
	gauge(c.healthy, truth(s.Err == nil))
	gauge(c.trusted, truth(s.Trusted))
	if slices.Contains(phases, s.Phase) { // a source that does not rotate has no phase
		for _, p := range phases {
			gauge(c.phase, truth(p == s.Phase), string(p))
		}
		gauge(c.clockAhead, s.ClockAhead.Seconds())
	}
	metrics <- prometheus.MustNewConstMetric(c.renewals, prometheus.CounterValue, float64(s.Renewals))
	metrics <- prometheus.MustNewConstMetric(c.rotations, prometheus.CounterValue, float64(s.Rotations))
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
