// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// These are metrics of an API server. The first ones have the prefix apiserver_admission_ (k8s.io/apiserver
// pkg/admission/metrics).
const (
	durationMetric   = "apiserver_admission_webhook_admission_duration_seconds"
	rejectionMetric  = "apiserver_admission_webhook_rejection_count"
	failOpenMetric   = "apiserver_admission_webhook_fail_open_count"
	conditionsMetric = "apiserver_admission_match_condition_evaluation_errors_total"
	conversionMetric = "apiserver_crd_conversion_webhook_duration_seconds"
	requestMetric    = "apiserver_request_total"
	startMetric      = "process_start_time_seconds"
)

// Metrics are counts of one API server, or the sums of several.
type Metrics struct {
	// Start is when the process started: the earliest of several.
	Start time.Time
	// Writes counts the requests that create, change or delete objects.
	Writes float64
	Calls  map[CallKey]*Calls
}

// A CallKey identifies a webhook in the metrics. The API server does not record its configuration.
type CallKey struct {
	// Kind is Mutating, Validating or Conversion.
	Kind string
	// Name is the name of the webhook or of the CustomResourceDefinition.
	Name string
}

// Calls counts the calls of one webhook.
type Calls struct {
	All float64
	// Denied calls returned a decision. Failed calls rejected the request because of failurePolicy Fail, and Ignored
	// calls failed and were ignored.
	Denied, Failed, Ignored float64
	// ConditionErrors counts the errors of matchConditions.
	ConditionErrors float64
	// Within counts the calls that took at most the key, in seconds.
	Within map[float64]float64
}

// longestLine is the limit for a line of metrics, in bytes. Lines have a few hundred.
const longestLine = 1 << 20

// ReadMetrics reads the metrics of an API server. It keeps only the metrics that the checks need in memory.
func ReadMetrics(from io.Reader) (*Metrics, error) {
	var kept bytes.Buffer
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if isNeeded(lines.Bytes()) {
			kept.Write(lines.Bytes())
			kept.WriteByte('\n')
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&kept)
	if err != nil {
		return nil, err
	}
	return metricsOf(families), nil
}

// isNeeded reports whether a line has the type or a sample of a metric that metricsOf reads.
func isNeeded(line []byte) bool {
	name, _ := bytes.CutPrefix(line, []byte("# TYPE "))
	for _, metric := range []string{durationMetric, rejectionMetric, failOpenMetric, conditionsMetric, conversionMetric, requestMetric, startMetric} {
		if bytes.HasPrefix(name, []byte(metric)) {
			return true
		}
	}
	return false
}

func metricsOf(families map[string]*dto.MetricFamily) *Metrics {
	m := &Metrics{Calls: map[CallKey]*Calls{}}
	each := func(name string, add func(labels map[string]string, value *dto.Metric)) {
		for _, one := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range one.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			add(labels, one)
		}
	}
	each(startMetric, func(_ map[string]string, v *dto.Metric) { m.Start = seconds(v.GetGauge().GetValue()) })
	each(requestMetric, func(labels map[string]string, v *dto.Metric) {
		if isWrite(labels) {
			m.Writes += v.GetCounter().GetValue()
		}
	})
	each(durationMetric, func(labels map[string]string, v *dto.Metric) { m.webhook(labels).observe(v.GetHistogram()) })
	each(failOpenMetric, func(labels map[string]string, v *dto.Metric) { m.webhook(labels).Ignored += v.GetCounter().GetValue() })
	each(conditionsMetric, func(labels map[string]string, v *dto.Metric) {
		if labels["kind"] == "webhook" {
			m.webhook(labels).ConditionErrors += v.GetCounter().GetValue()
		}
	})
	each(rejectionMetric, func(labels map[string]string, v *dto.Metric) {
		c := m.webhook(labels)
		if labels["error_type"] == "no_error" {
			c.Denied += v.GetCounter().GetValue()
		} else {
			c.Failed += v.GetCounter().GetValue()
		}
	})
	each(conversionMetric, func(labels map[string]string, v *dto.Metric) {
		c := m.calls(CallKey{Conversion, labels["crd_name"]})
		c.observe(v.GetHistogram())
		if labels["succeeded"] == "false" {
			c.Failed += float64(v.GetHistogram().GetSampleCount())
		}
	})
	return m
}

func seconds(since1970 float64) time.Time {
	return time.UnixMilli(int64(since1970 * 1000))
}

// isWrite reports whether the labels are of requests that write objects. Reviews are created, but not stored.
func isWrite(labels map[string]string) bool {
	verbs := []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	return slices.Contains(verbs, labels["verb"]) && labels["group"] != "authentication.k8s.io" && labels["group"] != "authorization.k8s.io"
}

func (m *Metrics) webhook(labels map[string]string) *Calls {
	kind := Validating
	if labels["type"] == "admit" {
		kind = Mutating
	}
	return m.calls(CallKey{kind, labels["name"]})
}

func (m *Metrics) calls(k CallKey) *Calls {
	if m.Calls[k] == nil {
		m.Calls[k] = &Calls{Within: map[float64]float64{}}
	}
	return m.Calls[k]
}

func (c *Calls) observe(h *dto.Histogram) {
	c.All += float64(h.GetSampleCount())
	for _, b := range h.GetBucket() {
		c.Within[b.GetUpperBound()] += float64(b.GetCumulativeCount())
	}
}

// Add adds the counts of another API server.
func (m *Metrics) Add(other *Metrics) { m.add(other, 1) }

// Since returns the difference of two scrapes: the counts of m minus those of before, an earlier scrape of the same
// processes.
func (m *Metrics) Since(before *Metrics) *Metrics {
	result := &Metrics{Start: m.Start, Calls: map[CallKey]*Calls{}}
	result.add(m, 1)
	result.add(before, -1)
	return result
}

func (m *Metrics) add(other *Metrics, sign float64) {
	if m.Start.IsZero() || other.Start.Before(m.Start) {
		m.Start = other.Start
	}
	m.Writes += sign * other.Writes
	for k, from := range other.Calls {
		to := m.calls(k)
		to.All += sign * from.All
		to.Denied += sign * from.Denied
		to.Failed += sign * from.Failed
		to.Ignored += sign * from.Ignored
		to.ConditionErrors += sign * from.ConditionErrors
		for bound, n := range from.Within {
			to.Within[bound] += sign * n
		}
	}
}

// Above returns the number of calls that certainly took longer than this, in seconds. The histograms of the API server have
// different bounds, so the lowest bound counts that is not below it.
func (c *Calls) Above(seconds float64) float64 {
	for _, bound := range slices.Sorted(maps.Keys(c.Within)) {
		if bound >= seconds {
			return c.All - c.Within[bound]
		}
	}
	return 0
}

// AtMost returns the lowest bound of the histogram, in seconds, within which at least this share of the calls ended. It
// returns 0 if too many calls took longer than the highest bound, or if there were no calls.
func (c *Calls) AtMost(share float64) float64 {
	for _, bound := range slices.Sorted(maps.Keys(c.Within)) {
		if c.All > 0 && c.Within[bound] >= share*c.All && bound < 1e6 { // the last one is infinite
			return bound
		}
	}
	return 0
}
