// SPDX-License-Identifier: Apache-2.0

// Package metrics exports Prometheus metrics of the calls of hooks, the load of servers, the state
// of certificates, the phase of installations and the numbers of recorders, on a registry of the caller's choice.
//
//	observed, err := metrics.New(registry, metrics.Options{Hooks: hooks})
//	server := webhook.NewServer(webhook.Options{Observers: []webhook.Observer{observed}, …}, hooks...)
//	err = metrics.Server(registry, "hooks", server.Load)
//
// All names begin with admitkit_. The labels of calls are few and bounded: webhook is the name of a
// hook in its registration, type is "mutating" or "validating", and outcome is a constant of
// package webhook. No value from a request, such as a namespace or a user, becomes a label.
//
// A dashboard and alert rules for these metrics are in docs/monitoring.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Options configure [New]. The zero value works.
type Options struct {
	// Hooks are the hooks whose series exist from the start, so that a rate counts their first
	// denial or failure. Other hooks get their series with their first call.
	Hooks []*webhook.Hook
	// Buckets are the upper bounds of the classic histogram of durations, in seconds and ascending.
	// If Buckets is empty, there are 14 bounds from 1 ms to 30 s, the longest timeout of a webhook.
	// Native histograms do not use Buckets.
	Buckets []float64
	// TraceID, if set, returns the id of the trace in ctx, or "" for none. It becomes the exemplar
	// of a duration, with the label trace_id. Use TraceID of package tracing. The observer that
	// puts the span into the context must come before this one.
	TraceID func(context.Context) string
}

// Metrics observes the calls of any number of servers and hooks. It is safe for concurrent use.
type Metrics struct {
	calls, withheld, handshakes *prometheus.CounterVec
	inFlight                    *prometheus.GaugeVec
	duration                    *prometheus.HistogramVec
	body, patch, patchChanges   *prometheus.HistogramVec
	traceID                     func(context.Context) string

	mu    sync.Mutex                          // held to add a hook
	hooks atomic.Pointer[map[hookKey]*series] // replaced, never changed
}

var (
	_ webhook.Observer           = (*Metrics)(nil)
	_ webhook.ConnectionObserver = (*Metrics)(nil)
)

// New registers the metrics of calls on reg, all or none. Use one Metrics per registry, for any
// number of servers and hooks.
func New(reg prometheus.Registerer, o Options) (*Metrics, error) {
	if reg == nil {
		return nil, errors.New("metrics: the registry is nil: use prometheus.NewRegistry()")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	m := newMetrics(o)
	all := collectors{m.calls, m.withheld, m.inFlight, m.duration, m.body, m.patch, m.patchChanges, m.handshakes}
	if err := register(reg, all, "the metrics of calls", "create one Metrics and use it for every server and hook"); err != nil {
		return nil, err
	}
	for _, h := range o.Hooks {
		m.of(h)
	}
	return m, nil
}

// register registers a collector. The parameters what and advice are texts for its errors. The first one names the
// metrics, and the second one says what to do if the registry has them already.
func register(reg prometheus.Registerer, c prometheus.Collector, what, advice string) error {
	err := reg.Register(c)
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		return fmt.Errorf("metrics: the registry already has %s: %s", what, advice)
	}
	if err != nil {
		return fmt.Errorf("metrics: cannot register %s: %w", what, err)
	}
	return nil
}

// The labels of the metrics of calls, in the order in which WithLabelValues takes their values.
const labelWebhook, labelType, labelOutcome, labelMode = "webhook", "type", "outcome", "mode"

// labelTraceID is the exemplar label that Grafana expects.
const labelTraceID = "trace_id"

func newMetrics(o Options) *Metrics {
	hook := []string{labelWebhook, labelType}
	outcome := []string{labelWebhook, labelType, labelOutcome}
	buckets := o.Buckets
	if len(buckets) == 0 {
		buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	}
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admitkit_calls_total",
			Help: "Calls that have ended, by outcome.",
		}, outcome),
		withheld: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admitkit_withheld_total",
			Help: "Calls in the modes Warn and Shadow whose decision or failure had no effect, by mode and outcome.",
		}, []string{labelWebhook, labelType, labelMode, labelOutcome}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "admitkit_calls_in_flight",
			Help: "Calls that have not ended yet.",
		}, hook),
		duration:     histogram("admitkit_call_duration_seconds", "Time from the headers of a call until its answer was encoded.", buckets, outcome),
		body:         histogram("admitkit_request_body_bytes", "Size of the request bodies.", sizes(1<<10, 16<<20), hook),
		patch:        histogram("admitkit_patch_bytes", "Size of the patches, without empty ones.", sizes(64, 4<<20), hook),
		patchChanges: histogram("admitkit_patch_operations", "Number of operations of the patches, without empty ones.", prometheus.ExponentialBuckets(1, 2, 11), hook),
		handshakes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admitkit_tls_handshake_failures_total",
			Help: "Failed TLS handshakes, by class of failure.",
		}, []string{"class"}),
		traceID: o.TraceID,
	}
	m.hooks.Store(&map[hookKey]*series{})
	return m
}

// histogram returns a histogram with these classic buckets, and native buckets that are at most 10%
// apart.
func histogram(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

// sizes returns bounds from least to most bytes, each four times the previous one.
func sizes(least, most float64) []float64 {
	var bounds []float64
	for n := least; n <= most; n *= 4 {
		bounds = append(bounds, n)
	}
	return bounds
}

// check returns an error for options with which the client library would panic.
func (o Options) check() error {
	if slices.Contains(o.Hooks, nil) {
		return errors.New("metrics: Options.Hooks holds a nil hook")
	}
	for i, bound := range o.Buckets {
		switch {
		case math.IsNaN(bound):
			return errors.New("metrics: Options.Buckets holds NaN")
		case i > 0 && o.Buckets[i-1] >= bound:
			return fmt.Errorf("metrics: Options.Buckets must ascend, but %v is followed by %v", o.Buckets[i-1], bound)
		}
	}
	return nil
}

// Begin implements [webhook.Observer].
func (m *Metrics) Begin(ctx context.Context, h *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	s := m.of(h)
	s.inFlight.Inc()
	if m.traceID != nil {
		if id := m.traceID(ctx); id != "" {
			return ctx, func(c *webhook.Observation) { s.finish(c, id) }
		}
	}
	return ctx, s.end
}

// HandshakeFailed implements [webhook.ConnectionObserver].
func (m *Metrics) HandshakeFailed(class string) { m.handshakes.WithLabelValues(text(class)).Inc() }

// text makes s a valid label value. One value that is not UTF-8 would make every scrape of the
// registry fail.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// collectors are registered together, so that a registry has all of them or none.
type collectors []prometheus.Collector

func (c collectors) Describe(descs chan<- *prometheus.Desc) {
	for _, one := range c {
		one.Describe(descs)
	}
}

func (c collectors) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range c {
		one.Collect(metrics)
	}
}

// outcomes lists the outcomes of a call. A test compares it with the constants of package webhook.
var outcomes = []webhook.Outcome{
	webhook.Allowed, webhook.Mutated, webhook.Denied, webhook.Failed,
	webhook.Panicked, webhook.TimedOut, webhook.Shed, webhook.Refused, webhook.Canceled,
}

// outcomesOf returns the outcomes that the hook can have.
func outcomesOf(mutating bool) []webhook.Outcome {
	if mutating {
		return outcomes
	}
	return slices.DeleteFunc(slices.Clone(outcomes), func(o webhook.Outcome) bool { return o == webhook.Mutated })
}

// withheldOf returns the outcomes that the hook can withhold in the modes Warn and Shadow, except for Canceled, which
// says nothing about the hook.
func withheldOf(mutating bool) []webhook.Outcome {
	list := []webhook.Outcome{webhook.Denied, webhook.Failed, webhook.Panicked, webhook.TimedOut}
	if mutating {
		list = append(list, webhook.Mutated)
	}
	return list
}
