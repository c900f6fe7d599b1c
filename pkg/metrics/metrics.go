// SPDX-License-Identifier: Apache-2.0

// Package metrics counts and times the calls of hooks, and shows the load of servers and the state
// of certificates, on a Prometheus registry of the caller's choice.
//
//	observed, err := metrics.New(registry, metrics.Options{Hooks: hooks})
//	server := webhook.NewServer(webhook.Options{Observers: []webhook.Observer{observed}, …}, hooks...)
//	err = metrics.Server(registry, "hooks", server.Load)
//
// Every name begins with admitkit_. The labels are few and bounded: webhook is the name of a
// hook in its registration and type is "mutating" or "validating", both known before the first
// call, and outcome is one of the constants of package webhook. Nothing that a request says of
// itself, such as a namespace or a user, becomes a label.
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
	// Hooks have their series from the start, so that the first denial or failure of a hook
	// counts in a rate. Other hooks get theirs with their first call.
	Hooks []*webhook.Hook
	// Buckets are the upper bounds, in seconds and ascending, of the classic histogram of
	// durations: when empty, 14 from 1 ms to 30 s, the longest timeout of a webhook. Servers
	// that read native histograms get finer ones, whatever is set here.
	Buckets []float64
	// TraceID, unless nil, returns the trace that a duration is an example of, to be its exemplar
	// with the label trace_id, or "" for none: see TraceID of package tracing. The observer that
	// puts the span into the context must come before this one.
	TraceID func(context.Context) string
}

// Metrics observes the calls of any number of servers and hooks. It is safe for concurrent use.
type Metrics struct {
	calls, handshakes         *prometheus.CounterVec
	inFlight                  *prometheus.GaugeVec
	duration                  *prometheus.HistogramVec
	body, patch, patchChanges *prometheus.HistogramVec
	traceID                   func(context.Context) string

	mu    sync.Mutex                          // held to add a hook
	hooks atomic.Pointer[map[hookKey]*series] // replaced, never changed
}

var (
	_ webhook.Observer           = (*Metrics)(nil)
	_ webhook.ConnectionObserver = (*Metrics)(nil)
)

// New registers the metrics of calls on reg: one Metrics for each registry, however many servers
// there are. It registers all of them or none.
func New(reg prometheus.Registerer, o Options) (*Metrics, error) {
	if reg == nil {
		return nil, errors.New("metrics: no registry was given: use prometheus.NewRegistry()")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	m := newMetrics(o)
	err := reg.Register(collectors{m.calls, m.inFlight, m.duration, m.body, m.patch, m.patchChanges, m.handshakes})
	if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
		return nil, errors.New("metrics: the registry has the metrics of calls already: make one Metrics and hand it to every server and hook")
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: the registry does not take the metrics of calls: %w", err)
	}
	for _, h := range o.Hooks {
		m.of(h)
	}
	return m, nil
}

// The labels of calls, in their order.
const labelWebhook, labelType, labelOutcome = "webhook", "type", "outcome"

// labelTraceID is what Grafana looks for in an exemplar.
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
			Help: "Calls that were answered, by what came of them.",
		}, outcome),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "admitkit_calls_in_flight",
			Help: "Calls that are being answered.",
		}, hook),
		duration:     histogram("admitkit_call_duration_seconds", "Time from the headers of a call until its answer was made.", buckets, outcome),
		body:         histogram("admitkit_request_body_bytes", "Size of the request bodies that were read.", sizes(1<<10, 16<<20), hook),
		patch:        histogram("admitkit_patch_bytes", "Size of the patches of the calls that changed an object.", sizes(64, 4<<20), hook),
		patchChanges: histogram("admitkit_patch_operations", "Number of operations in the patches of the calls that changed an object.", prometheus.ExponentialBuckets(1, 2, 11), hook),
		handshakes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admitkit_tls_handshake_failures_total",
			Help: "TLS handshakes that failed, by why.",
		}, []string{"class"}),
		traceID: o.TraceID,
	}
	m.hooks.Store(&map[hookKey]*series{})
	return m
}

// histogram returns one with these buckets, and with native ones, no more than 10% apart, for
// servers that read them.
func histogram(name, help string, buckets []float64, labels []string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

// sizes returns bounds from least to most bytes, each four times the one before.
func sizes(least, most float64) []float64 {
	var bounds []float64
	for n := least; n <= most; n *= 4 {
		bounds = append(bounds, n)
	}
	return bounds
}

// check says what the client library would panic at.
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

// text is s as a label may hold it: one that is not UTF-8 keeps a whole registry from being read.
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

// outcomes are all that a call may have: a test compares them with the constants of webhook.
var outcomes = []webhook.Outcome{
	webhook.Allowed, webhook.Mutated, webhook.Denied, webhook.Failed,
	webhook.Panicked, webhook.TimedOut, webhook.Shed, webhook.Refused, webhook.Canceled,
}

// outcomesOf leaves out what a hook cannot do.
func outcomesOf(mutating bool) []webhook.Outcome {
	if mutating {
		return outcomes
	}
	return slices.DeleteFunc(slices.Clone(outcomes), func(o webhook.Outcome) bool { return o == webhook.Mutated })
}
