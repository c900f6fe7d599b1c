// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/record"
)

// Recorder registers metrics of a recorder on reg. Pass the recorder's Stats method as stats: each scrape calls it once.
// The label "recorder" of the metrics has the value name. Recorder returns an error if reg or stats is nil, or if the
// registry has another recorder with this name.
func Recorder(reg prometheus.Registerer, name string, stats func() record.Stats) error {
	if reg == nil || stats == nil {
		return errors.New("metrics: Recorder needs a registry and the Stats of a recorder")
	}
	return register(reg, newRecorderCollector(name, stats), fmt.Sprintf("the recorder %q", name), "give each recorder its own name")
}

// A recorderCollector reads the numbers of a recorder once for each scrape.
type recorderCollector struct {
	stats                  func() record.Stats
	calls, written, queued *prometheus.Desc
}

func newRecorderCollector(name string, stats func() record.Stats) *recorderCollector {
	desc := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("admitkit_recorder_"+metric, help, labels, prometheus.Labels{"recorder": name})
	}
	return &recorderCollector{
		stats:   stats,
		calls:   desc("calls_total", "Calls that a recorder has seen, by result.", "result"),
		written: desc("written_bytes_total", "Bytes that were written to files."),
		queued:  desc("queued_bytes", "Memory of the calls that are not written yet."),
	}
}

func (c *recorderCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.calls, c.written, c.queued} {
		descs <- d
	}
}

func (c *recorderCollector) Collect(metrics chan<- prometheus.Metric) {
	s := c.stats()
	for _, result := range []struct {
		name  string
		value int64
	}{
		{"recorded", s.Recorded}, {"not_sampled", s.NotSampled}, {"queue_full", s.QueueFull}, {"disk_failed", s.DiskFailed},
		{"too_large", s.TooLarge}, {"unreadable", s.Unreadable},
	} {
		metrics <- prometheus.MustNewConstMetric(c.calls, prometheus.CounterValue, float64(result.value), result.name)
	}
	metrics <- prometheus.MustNewConstMetric(c.written, prometheus.CounterValue, float64(s.WrittenBytes))
	metrics <- prometheus.MustNewConstMetric(c.queued, prometheus.GaugeValue, float64(s.QueuedBytes))
}
