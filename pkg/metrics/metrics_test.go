// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func TestEveryOutcomeIsCounted(t *testing.T) {
	for _, outcome := range constants(t, "webhook", "Outcome") {
		t.Run(outcome, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			hook := mutating("a.example.com")
			m := newMetrics(t, reg, metrics.Options{})
			observe(m, hook, webhook.Observation{Hook: hook.Name(), Mutating: true, Outcome: webhook.Outcome(outcome), Duration: 3 * time.Millisecond})
			labels := fmt.Sprintf(`{outcome=%q,type="mutating",webhook="a.example.com"}`, outcome)
			got := scrape(t, reg)
			check(t, got, map[string]float64{
				"admitkit_calls_total" + labels:                                     1,
				"admitkit_call_duration_seconds_count" + labels:                     1,
				"admitkit_call_duration_seconds_sum" + labels:                       .003,
				`admitkit_calls_in_flight{type="mutating",webhook="a.example.com"}`: 0,
			})
			var sum float64
			for _, name := range about(got, "admitkit_calls_total{") {
				sum += got[name]
			}
			if sum != 1 {
				t.Errorf("one call is counted %v times", sum)
			}
		})
	}
}

// TestWithheldDecisions requires that a decision without effect is counted by its mode, next to the call itself.
func TestWithheldDecisions(t *testing.T) {
	reg := prometheus.NewRegistry()
	hook := mutating("a.example.com")
	m := newMetrics(t, reg, metrics.Options{Hooks: []*webhook.Hook{hook}})
	observe(m, hook, webhook.Observation{Outcome: webhook.Allowed})
	if names := about(scrape(t, reg), "admitkit_withheld_total"); len(names) > 0 {
		t.Errorf("nothing was withheld, but there are %v", names)
	}
	observe(m, hook, webhook.Observation{Outcome: webhook.Allowed, Mode: webhook.Shadow, Withheld: webhook.Denied})
	check(t, scrape(t, reg), map[string]float64{
		`admitkit_withheld_total{mode="Shadow",outcome="denied",type="mutating",webhook="a.example.com"}`: 1,
		`admitkit_calls_total{outcome="allowed",type="mutating",webhook="a.example.com"}`:                 2,
	})
}

// TestWithheldSeriesExist requires that the counters of a hook with modes exist before its first call.
func TestWithheldSeriesExist(t *testing.T) {
	reg := prometheus.NewRegistry()
	newMetrics(t, reg, metrics.Options{Hooks: []*webhook.Hook{mutating("a.example.com").WithMode(webhook.Shadow), validating("b.example.com").WithMode(webhook.Enforce), validating("c.example.com")}})
	got := scrape(t, reg)
	for _, mode := range []string{"Warn", "Shadow"} {
		for _, outcome := range []string{"denied", "failed", "panicked", "timed_out"} {
			for _, name := range []string{`type="mutating",webhook="a.example.com"`, `type="validating",webhook="b.example.com"`} {
				check(t, got, map[string]float64{fmt.Sprintf(`admitkit_withheld_total{mode=%q,outcome=%q,%s}`, mode, outcome, name): 0})
			}
		}
	}
	if names := about(got, "admitkit_withheld_total"); len(names) != 2*(5+4) {
		t.Errorf("there are %v", names)
	}
}

func TestInFlight(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, hook := newMetrics(t, reg, metrics.Options{}), validating("a.example.com")
	const series = `admitkit_calls_in_flight{type="validating",webhook="a.example.com"}`
	_, first := m.Begin(t.Context(), hook, &http.Request{})
	_, second := m.Begin(t.Context(), hook, &http.Request{})
	check(t, scrape(t, reg), map[string]float64{series: 2})
	second(&webhook.Observation{Outcome: webhook.Allowed})
	check(t, scrape(t, reg), map[string]float64{series: 1})
	first(&webhook.Observation{Outcome: webhook.Shed})
	check(t, scrape(t, reg), map[string]float64{series: 0})
}

func TestSizes(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg, metrics.Options{})
	hook := mutating("a.example.com")
	observe(m, hook, webhook.Observation{Outcome: webhook.Mutated, BodyBytes: 5000, PatchBytes: 120, PatchOperations: 3})
	observe(m, hook, webhook.Observation{Outcome: webhook.Allowed, BodyBytes: 1000})
	observe(m, hook, webhook.Observation{Outcome: webhook.Shed}) // the body was not read
	const labels = `{type="mutating",webhook="a.example.com"}`
	check(t, scrape(t, reg), map[string]float64{
		"admitkit_request_body_bytes_count" + labels: 2,
		"admitkit_request_body_bytes_sum" + labels:   6000,
		"admitkit_patch_bytes_count" + labels:        1,
		"admitkit_patch_bytes_sum" + labels:          120,
		"admitkit_patch_operations_count" + labels:   1,
		"admitkit_patch_operations_sum" + labels:     3,
	})
}

func TestHandshakes(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg, metrics.Options{})
	m.HandshakeFailed("untrusted")
	m.HandshakeFailed("untrusted")
	m.HandshakeFailed("broken \xff") // invalid UTF-8 would make every scrape of the registry fail
	check(t, scrape(t, reg), map[string]float64{
		`admitkit_tls_handshake_failures_total{class="untrusted"}`:       2,
		"admitkit_tls_handshake_failures_total{class=\"broken \uFFFD\"}": 1,
	})
}

// The counters of the hooks in Options must exist from the start, with the value zero. The rate of a counter that
// appears with its first event would miss that event.
func TestKnownHooksCountFromZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	newMetrics(t, reg, metrics.Options{Hooks: []*webhook.Hook{mutating("a.example.com"), validating("a.example.com"), validating("b.example.com")}})
	got := scrape(t, reg)
	want := map[string]float64{}
	for _, outcome := range constants(t, "webhook", "Outcome") {
		for _, hook := range []string{`type="mutating",webhook="a.example.com"`, `type="validating",webhook="a.example.com"`, `type="validating",webhook="b.example.com"`} {
			if outcome != string(webhook.Mutated) || strings.Contains(hook, `"mutating"`) {
				want[fmt.Sprintf(`admitkit_calls_total{outcome=%q,%s}`, outcome, hook)] = 0
			}
		}
	}
	check(t, got, want)
	if names := about(got, "admitkit_calls_total{"); len(names) != len(want) {
		t.Errorf("%d series, want %d: %q", len(names), len(want), names)
	}
	if names := about(got, "admitkit_patch", "validating"); len(names) > 0 {
		t.Errorf("a validating hook has no patches, and yet: %q", names)
	}
}

func TestCopiesOfAHookShareTheirSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg, metrics.Options{})
	hook := validating("a.example.com")
	for range 5 {
		observe(m, hook, webhook.Observation{Outcome: webhook.Denied})
		hook = hook.WithMaxBodyBytes(1 << 20)
	}
	observe(m, mutating("a.example.com"), webhook.Observation{Outcome: webhook.Denied})
	check(t, scrape(t, reg), map[string]float64{
		`admitkit_calls_total{outcome="denied",type="validating",webhook="a.example.com"}`: 5,
		`admitkit_calls_total{outcome="denied",type="mutating",webhook="a.example.com"}`:   1,
	})
}

// The number of series must not depend on what clients send.
func TestLabelsAreBounded(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	reg := prometheus.NewRegistry()
	hooks := []*webhook.Hook{mutating("a.example.com"), validating("b.example.com")}
	m := newMetrics(t, reg, metrics.Options{Hooks: hooks})
	all := constants(t, "webhook", "Outcome")
	text := func() string { return fmt.Sprintf("%x\xff\n\"", random.Uint64()) }
	call := func(hook *webhook.Hook, outcome string) {
		observe(m, hook, webhook.Observation{
			Hook: hook.Name(), Mutating: hook.Mutating(), UID: types.UID(text()), Namespace: text(), Name: text(),
			Kind: metav1.GroupVersionKind{Group: text(), Version: text(), Kind: text()}, Operation: admissionv1.Operation(text()), DryRun: random.IntN(2) == 0,
			Outcome: webhook.Outcome(outcome), Code: random.Int32(), Err: errors.New(text()),
			Duration: time.Duration(random.Int64N(int64(time.Minute))), BodyBytes: random.IntN(1 << 25), PatchBytes: random.IntN(1 << 23), PatchOperations: random.IntN(1 << 12),
		})
	}
	for _, hook := range hooks {
		for _, outcome := range all {
			call(hook, outcome)
		}
	}
	before := len(scrape(t, reg))
	for range 200 {
		call(hooks[random.IntN(len(hooks))], all[random.IntN(len(all))])
	}
	if after := len(scrape(t, reg)); after != before {
		t.Errorf("seed %d: %d series became %d", seed, before, after)
	}
}

func TestRegistering(t *testing.T) {
	taken := func(name string) prometheus.Registerer {
		reg := prometheus.NewRegistry()
		reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "Of another package."}))
		return reg
	}
	twice := prometheus.NewRegistry()
	newMetrics(t, twice, metrics.Options{})
	rows := []struct {
		why  string
		reg  prometheus.Registerer
		o    metrics.Options
		want string
	}{
		{"no registry", nil, metrics.Options{}, "the registry is nil"},
		{"registered before", twice, metrics.Options{}, "the registry already has the metrics of calls: create one Metrics"},
		{"a metric of this package is registered already", taken("admitkit_calls_in_flight"), metrics.Options{}, "cannot register the metrics of calls: a previously registered descriptor with the same fully-qualified name"},
		{"buckets out of order", prometheus.NewRegistry(), metrics.Options{Buckets: []float64{1, 3, 2}}, "Options.Buckets must ascend, but 3 is followed by 2"},
		{"a bucket twice", prometheus.NewRegistry(), metrics.Options{Buckets: []float64{1, 1}}, "Options.Buckets must ascend, but 1 is followed by 1"},
		{"a bucket that is not a number", prometheus.NewRegistry(), metrics.Options{Buckets: []float64{math.NaN()}}, "Options.Buckets holds NaN"},
		{"no hook", prometheus.NewRegistry(), metrics.Options{Hooks: []*webhook.Hook{nil}}, "Options.Hooks holds a nil hook"},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			var before int
			if reg, ok := row.reg.(prometheus.Gatherer); ok {
				before = len(scrape(t, reg))
			}
			_, err := metrics.New(row.reg, row.o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want …%s…", err, row.want)
			}
			if reg, ok := row.reg.(prometheus.Gatherer); ok && len(scrape(t, reg)) != before {
				t.Error("something was registered nevertheless")
			}
		})
	}
}

func TestRegistriesAreIndependent(t *testing.T) {
	one, other := prometheus.NewRegistry(), prometheus.NewRegistry()
	hook := validating("a.example.com")
	m := newMetrics(t, one, metrics.Options{})
	newMetrics(t, other, metrics.Options{Hooks: []*webhook.Hook{hook}})
	observe(m, hook, webhook.Observation{Outcome: webhook.Allowed})
	const series = `admitkit_calls_total{outcome="allowed",type="validating",webhook="a.example.com"}`
	check(t, scrape(t, one), map[string]float64{series: 1})
	check(t, scrape(t, other), map[string]float64{series: 0})
}

func TestHistogramsAreClassicAndNative(t *testing.T) {
	reg := prometheus.NewRegistry()
	hook := mutating("a.example.com")
	observe(newMetrics(t, reg, metrics.Options{}), hook, webhook.Observation{Outcome: webhook.Mutated, Duration: 40 * time.Second, BodyBytes: 1, PatchBytes: 1, PatchOperations: 1})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if h := metric.GetHistogram(); h != nil {
				found = append(found, family.GetName())
				if len(h.GetBucket()) == 0 || len(h.GetPositiveSpan()) == 0 {
					t.Errorf("%s has %d classic buckets and %d native spans", family.GetName(), len(h.GetBucket()), len(h.GetPositiveSpan()))
				}
			}
		}
	}
	want := []string{"admitkit_call_duration_seconds", "admitkit_patch_bytes", "admitkit_patch_operations", "admitkit_request_body_bytes"}
	if !slices.Equal(found, want) {
		t.Errorf("histograms %q, want %q", found, want)
	}
	// 1 ms and 30 s must be bucket bounds. Other libraries lack bounds in this range.
	got := scrape(t, reg)
	for _, le := range []string{"0.001", "30", "+Inf"} {
		if len(about(got, "call_duration_seconds_bucket", `le="`+le+`"`)) != 1 {
			t.Errorf("no bucket up to %s: %q", le, about(got, "call_duration_seconds_bucket"))
		}
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	reg := prometheus.NewRegistry()
	hook := mutating("a.example.com")
	m := newMetrics(t, reg, metrics.Options{})
	observe(m, hook, webhook.Observation{Outcome: webhook.Mutated, BodyBytes: 1})
	m.HandshakeFailed("other")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %+v", err, problems)
	}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "admitkit_") || !strings.HasSuffix(family.GetHelp(), ".") {
			t.Errorf("%s: %s", family.GetName(), family.GetHelp())
		}
	}
}

func TestExemplars(t *testing.T) {
	type key struct{}
	rows := []struct {
		why, trace string
		want       bool
	}{
		{"a trace", "0af7651916cd43dd8448eb211c80319c", true},
		{"none", "", false},
		{"longer than an exemplar may be", strings.Repeat("a", 121), false},
		{"the longest", strings.Repeat("a", 120), true},
		{"not text", "\xff", false},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			m := newMetrics(t, reg, metrics.Options{TraceID: func(ctx context.Context) string { return ctx.Value(key{}).(string) }})
			_, end := m.Begin(context.WithValue(t.Context(), key{}, row.trace), validating("a.example.com"), &http.Request{})
			end(&webhook.Observation{Outcome: webhook.Allowed, Duration: time.Millisecond})
			var found []string
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				for _, metric := range family.GetMetric() {
					for _, bucket := range metric.GetHistogram().GetBucket() {
						for _, label := range bucket.GetExemplar().GetLabel() {
							found = append(found, label.GetName()+"="+label.GetValue())
						}
					}
				}
			}
			if want := []string{"trace_id=" + row.trace}; row.want != slices.Equal(found, want) || !row.want && len(found) > 0 {
				t.Errorf("exemplars %q", found)
			}
			check(t, scrape(t, reg), map[string]float64{`admitkit_call_duration_seconds_count{outcome="allowed",type="validating",webhook="a.example.com"}`: 1})
		})
	}
}

// Many goroutines call old and new hooks while the registry is scraped. Every call must be counted.
func TestConcurrentCalls(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(t, reg, metrics.Options{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				observe(m, validating(fmt.Sprintf("hook-%d.example.com", i%5)), webhook.Observation{Outcome: webhook.Allowed, BodyBytes: 1})
				m.HandshakeFailed("other")
			}
		})
	}
	for range 3 {
		scrape(t, reg)
	}
	all.Wait()
	got := scrape(t, reg)
	var sum float64
	for _, name := range about(got, "admitkit_calls_total{", `outcome="allowed"`) {
		sum += got[name]
	}
	if sum != 8*50 {
		t.Errorf("%v calls were counted, want %d", sum, 8*50)
	}
	for _, name := range about(got, "in_flight") {
		if got[name] != 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}
