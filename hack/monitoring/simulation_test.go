// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/rulefmt"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	apiservermetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/rollout"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A simulation has a webhook with one replica, an API server, and a Prometheus that scrapes both once a minute.
// Production code generates the metrics. Only the time is simulated.
type simulation struct {
	t       testing.TB
	now     time.Time
	store   *store
	replica *replica // nil while no replica runs
	name    string   // of the webhook, unique because all simulations share the counters of the API server
	hook    *webhook.Hook
}

// A replica simulates one process of the webhook server.
type replica struct {
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	source   *source
	load     webhook.Load
	install  *installation
	modes    *rollout.Rollout
	file     string // of the modes
}

// An installation is an installer that only reports a phase, which tests set.
type installation struct{ phase install.Phase }

func (i *installation) Status() install.Status { return install.Status{Phase: i.phase} }

// A source is a certs.Source with a status that tests set.
type source struct{ status certs.Status }

func (*source) Start(context.Context) error { return nil }
func (*source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("none")
}
func (*source) Bundle() []byte         { return nil }
func (s *source) Status() certs.Status { return s.status }

func newSimulation(t testing.TB) *simulation {
	w := &simulation{t: t, now: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), store: newStore(), name: t.Name()}
	w.hook = webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: w.name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
	w.startReplica()
	return w
}

func (w *simulation) startReplica() {
	reg := prometheus.NewRegistry()
	file := filepath.Join(w.t.TempDir(), "modes.yaml")
	w.write(file, "hooks: []")
	modes, err := rollout.New(file, rollout.Options{Interval: time.Millisecond, Metrics: reg}, w.hook)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := metrics.New(reg, metrics.Options{Hooks: modes.Hooks()})
	if err != nil {
		w.t.Fatal(err)
	}
	src := &source{certs.Status{
		NotBefore: w.now.Add(-24 * time.Hour), NotAfter: w.now.Add(6 * 24 * time.Hour), CANotAfter: w.now.Add(300 * 24 * time.Hour),
		Phase: certs.Stable, Trusted: true,
	}}
	if err := metrics.Source(reg, "serving", src); err != nil {
		w.t.Fatal(err)
	}
	w.replica = &replica{reg, m, src, webhook.Load{
		Calls: 3, MaxCalls: 1000, Waiting: 3, Bytes: 30 << 10, MaxBytes: 24 << 20, Connections: 4, MaxConnections: 2000,
	}, &installation{install.Installed}, modes, file}
	if err := metrics.Installation(reg, "hooks.example.com", w.replica.install); err != nil {
		w.t.Fatal(err)
	}
	if err := metrics.Recorder(reg, "hooks", func() record.Stats { return record.Stats{} }); err != nil {
		w.t.Fatal(err)
	}
	load := &w.replica.load
	if err := metrics.Server(reg, "hooks", func() webhook.Load { return *load }); err != nil {
		w.t.Fatal(err)
	}
}

// call simulates count calls of the hook with the same outcome and duration.
func (w *simulation) call(outcome webhook.Outcome, count int, took time.Duration) {
	for range count {
		_, end := w.replica.metrics.Begin(w.t.Context(), w.hook, &http.Request{})
		c := &webhook.Observation{Hook: w.hook.Name(), Mutating: true, Outcome: outcome, Duration: took, BodyBytes: 2000}
		if outcome == webhook.Mutated {
			c.PatchBytes, c.PatchOperations = 120, 3
		}
		end(c)
	}
}

func (w *simulation) write(file, content string) {
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// breakModes writes an invalid file, and waits until the replica has read it.
func (w *simulation) breakModes() {
	w.write(w.replica.file, "hooks: [{webhook: unknown.example.com, mode: Warn}]")
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	ended := make(chan error)
	go func() { ended <- w.replica.modes.Start(ctx) }()
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		families, err := w.replica.registry.Gather()
		return slices.ContainsFunc(families, func(f *dto.MetricFamily) bool {
			return f.GetName() == "admitkit_rollout_file_valid" && f.GetMetric()[0].GetGauge().GetValue() == 0
		}), err
	})
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		w.t.Fatal(err)
	}
}

// withhold simulates calls of a hook that does not enforce.
func (w *simulation) withhold(mode webhook.Mode, outcome webhook.Outcome, count int) {
	for range count {
		_, end := w.replica.metrics.Begin(w.t.Context(), w.hook, &http.Request{})
		end(&webhook.Observation{Hook: w.hook.Name(), Mutating: true, Outcome: webhook.Allowed, Mode: mode, Withheld: outcome, Duration: time.Millisecond})
	}
}

// usual simulates a good minute: a few hundred calls and a probe that disconnects.
func (w *simulation) usual() {
	w.call(webhook.Allowed, 200, 3*time.Millisecond)
	w.call(webhook.Mutated, 100, 4*time.Millisecond)
	w.call(webhook.Denied, 5, 2*time.Millisecond)
	w.replica.metrics.HandshakeFailed("probe")
	attributes := admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "web", corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	for range 20 {
		apiservermetrics.Metrics.ObserveWebhook(w.t.Context(), w.name, 5*time.Millisecond, false, attributes, "admit", 200)
	}
	apiservermetrics.Metrics.ObserveWebhookRejection(w.t.Context(), w.name, "admit", "CREATE", apiservermetrics.WebhookRejectionNoError, 403)
}

func (w *simulation) failsOpen() {
	apiservermetrics.Metrics.ObserveWebhookFailOpen(w.t.Context(), w.name, "admit")
}

func (w *simulation) failsClosed() {
	apiservermetrics.Metrics.ObserveWebhookRejection(w.t.Context(), w.name, "admit", "CREATE", apiservermetrics.WebhookRejectionCallingWebhookError, 503)
}

// minute ends a simulated minute: Prometheus scrapes both targets.
func (w *simulation) minute() {
	w.now = w.now.Add(time.Minute)
	if w.replica != nil {
		w.store.scrape(w.t, w.replica.registry, w.now, map[string]string{"namespace": "hooks", "job": "hooks-metrics", "pod": "hooks-0", "instance": "10.0.0.7:8443"})
	}
	w.store.scrape(w.t, apiServer{w.name}, w.now, map[string]string{"job": "apiserver", "instance": "10.0.0.1:6443"})
}

// An apiServer gathers the API server's own metrics for one webhook.
type apiServer struct{ name string }

func (a apiServer) Gather() ([]*dto.MetricFamily, error) {
	all, err := legacyregistry.DefaultGatherer.Gather()
	for _, family := range all {
		family.Metric = slices.DeleteFunc(family.Metric, func(m *dto.Metric) bool {
			return !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "name" && l.GetValue() == a.name })
		})
	}
	return all, err
}

// evaluate evaluates the rules as Prometheus does each minute. An alert fires if its expression had
// a result with the same labels for the duration in the rule.
func (w *simulation) evaluate(rules []rulefmt.Rule, since map[string]time.Time, fired map[string]bool) {
	w.t.Helper()
	active := map[string]bool{}
	for _, rule := range rules {
		for _, sample := range w.store.query(w.t, rule.Expr, w.now) {
			key := rule.Alert + sample.Metric.String()
			active[key] = true
			if _, known := since[key]; !known {
				since[key] = w.now
			}
			if w.now.Sub(since[key]) >= time.Duration(rule.For) {
				fired[rule.Alert] = true
			}
		}
	}
	maps.DeleteFunc(since, func(key string, _ time.Time) bool { return !active[key] })
}
