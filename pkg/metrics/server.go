// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Server registers metrics of the load and the limits of a server on reg. They are read at each scrape. Pass the
// server's Load method as load. The label "server" of the metrics has the value name, which must be unique in the
// registry.
func Server(reg prometheus.Registerer, name string, load func() webhook.Load) error {
	if reg == nil || load == nil {
		return errors.New("metrics: Server needs a registry and the Load of a server")
	}
	return register(reg, newServerCollector(name, load), fmt.Sprintf("the server %q", name), "give each server its own name")
}

// A serverCollector reads the load of a server once for each scrape.
type serverCollector struct {
	load   func() webhook.Load
	gauges []loadGauge
}

type loadGauge struct {
	desc  *prometheus.Desc
	value func(*webhook.Load) float64
}

func newServerCollector(name string, load func() webhook.Load) *serverCollector {
	c := &serverCollector{load: load}
	gauge := func(metric, help string, value func(*webhook.Load) float64) {
		desc := prometheus.NewDesc("admitkit_server_"+metric, help, nil, prometheus.Labels{"server": name})
		c.gauges = append(c.gauges, loadGauge{desc, value})
	}
	gauge("calls", "Calls in flight, including handlers that still run after their deadline.", func(l *webhook.Load) float64 { return float64(l.Calls) })
	gauge("calls_waiting", "Calls in flight that have no answer yet.", func(l *webhook.Load) float64 { return float64(l.Waiting) })
	gauge("calls_limit", "Limit of calls in flight.", func(l *webhook.Load) float64 { return countLimit(l.MaxCalls) })
	gauge("body_bytes", "Memory for the bodies of calls in flight.", func(l *webhook.Load) float64 { return float64(l.Bytes) })
	gauge("body_bytes_limit", "Limit of the memory for bodies of calls in flight.", func(l *webhook.Load) float64 { return bytesLimit(l.MaxBytes) })
	gauge("connections", "Open connections.", func(l *webhook.Load) float64 { return float64(l.Connections) })
	gauge("connections_limit", "Limit of open connections, at which the server closes idle ones.", func(l *webhook.Load) float64 { return countLimit(l.MaxConnections) })
	return c
}

func (c *serverCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		descs <- g.desc
	}
}

func (c *serverCollector) Collect(metrics chan<- prometheus.Metric) {
	l := c.load()
	for _, g := range c.gauges {
		metrics <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(&l))
	}
}

// countLimit returns infinity if there is no limit.
func countLimit(n int) float64 {
	if n == math.MaxInt {
		return math.Inf(1)
	}
	return float64(n)
}

func bytesLimit(n int64) float64 {
	if n == math.MaxInt64 {
		return math.Inf(1)
	}
	return float64(n)
}
