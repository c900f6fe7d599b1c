// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A hookKey identifies a hook. Copies of a hook, such as those of a server, have the same key.
type hookKey struct {
	name     string
	mutating bool
}

// A series holds the metrics of one hook with bound labels, so that a call neither looks them up
// nor allocates.
type series struct {
	inFlight    prometheus.Gauge
	body        prometheus.Observer
	patch       prometheus.Observer // nil for validating hooks, as is patchNumber
	patchNumber prometheus.Observer
	outcomes    map[webhook.Outcome]*outcome
	withheld    *prometheus.CounterVec     // of this hook, by mode and outcome
	end         func(*webhook.Observation) // calls finish without a trace ID; created once, not per call
}

// An outcome holds the metrics of one outcome of a hook.
type outcome struct {
	calls prometheus.Counter
	// duration creates its histogram of about twenty series at the first call, since most hooks
	// never have most of the outcomes.
	duration func() prometheus.Observer
}

// of returns the series of a hook.
func (m *Metrics) of(h *webhook.Hook) *series {
	key := hookKey{h.Name(), h.Mutating()}
	if s := (*m.hooks.Load())[key]; s != nil {
		return s
	}
	return m.add(key, h.HasModes())
}

func (m *Metrics) add(key hookKey, modes bool) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.hooks.Load()
	if s := known[key]; s != nil { // another goroutine added it
		return s
	}
	more := maps.Clone(known)
	more[key] = m.newSeries(key, modes)
	m.hooks.Store(&more)
	return more[key]
}

// newSeries returns the series of a hook. With modes, the series of what the hook withholds begin at zero, too. Otherwise
// a rate would not count the first denial, failure or panic.
func (m *Metrics) newSeries(key hookKey, modes bool) *series {
	name, kind := text(key.name), "validating"
	if key.mutating {
		kind = "mutating"
	}
	s := &series{
		inFlight: m.inFlight.WithLabelValues(name, kind),
		body:     m.body.WithLabelValues(name, kind),
		outcomes: map[webhook.Outcome]*outcome{},
		withheld: m.withheld.MustCurryWith(prometheus.Labels{labelWebhook: name, labelType: kind}),
	}
	if key.mutating {
		s.patch = m.patch.WithLabelValues(name, kind)
		s.patchNumber = m.patchChanges.WithLabelValues(name, kind)
	}
	if modes {
		for _, mode := range []webhook.Mode{webhook.Warn, webhook.Shadow} {
			for _, o := range withheldOf(key.mutating) {
				s.withheld.WithLabelValues(string(mode), string(o))
			}
		}
	}
	for _, o := range outcomesOf(key.mutating) {
		s.outcomes[o] = &outcome{
			calls: m.calls.WithLabelValues(name, kind, string(o)),
			duration: sync.OnceValue(func() prometheus.Observer {
				return m.duration.WithLabelValues(name, kind, string(o))
			}),
		}
	}
	s.end = func(c *webhook.Observation) { s.finish(c, "") }
	return s
}

// finish records the metrics of a call that ended. traceID is "" if there is no trace.
func (s *series) finish(c *webhook.Observation, traceID string) {
	s.inFlight.Dec()
	if o := s.outcomes[c.Outcome]; o != nil {
		o.calls.Inc()
		observe(o.duration(), c.Duration.Seconds(), traceID)
	}
	if c.Withheld != "" {
		s.withheld.WithLabelValues(string(c.Mode), string(c.Withheld)).Inc()
	}
	if c.BodyBytes > 0 {
		s.body.Observe(float64(c.BodyBytes))
	}
	if c.Outcome == webhook.Mutated && s.patch != nil {
		s.patch.Observe(float64(c.PatchBytes))
		s.patchNumber.Observe(float64(c.PatchOperations))
	}
}

// observe records a value with the trace as its exemplar. It omits an exemplar for which the client library would
// panic.
func observe(on prometheus.Observer, value float64, traceID string) {
	with, ok := on.(prometheus.ExemplarObserver)
	if !ok || traceID == "" || len(labelTraceID)+len(traceID) > prometheus.ExemplarMaxRunes || !utf8.ValidString(traceID) {
		on.Observe(value)
		return
	}
	with.ObserveWithExemplar(value, prometheus.Labels{labelTraceID: traceID})
}
