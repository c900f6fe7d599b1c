// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the dashboard and alert rules of docs/monitoring with Prometheus' own
// query engine and the metrics of admitkit and the API server. It fails for unknown metric names,
// alerts that fire wrongly or not at all, and panels without data.
package monitoring

import (
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// scenarios describe an hour or more of a webhook: ten good minutes, then at least half an hour of a condition.
// Each lists all alerts that must fire.
var scenarios = []struct {
	name   string
	minute func(w *simulation, i int) // i counts the minutes since the beginning of the condition
	want   []string
}{
	{"all is well", func(w *simulation, _ int) { w.usual() }, nil},
	{"there are no calls", func(*simulation, int) {}, nil},
	{"denials by the thousand", func(w *simulation, _ int) { w.usual(); w.call(webhook.Denied, 5000, time.Millisecond) }, nil},
	{"one call fails", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.call(webhook.Failed, 1, time.Millisecond)
		}
	}, nil},
	{"the only call in an hour fails", func(w *simulation, i int) {
		if i == 0 {
			w.call(webhook.Failed, 1, time.Millisecond)
		}
	}, nil},
	{"one call in a thousand fails", func(w *simulation, i int) {
		if w.usual(); i%4 == 0 {
			w.call(webhook.Failed, 1, time.Millisecond)
			w.call(webhook.TimedOut, 1, 4500*time.Millisecond)
		}
	}, nil},
	{"a rolling restart sheds for a minute", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.call(webhook.Shed, 300, time.Millisecond)
		}
	}, nil},
	{"a replica restarts, and its counters begin at zero", func(w *simulation, i int) {
		if i == 5 {
			w.startReplica()
		}
		w.usual()
	}, nil},
	{"a leaf is renewed", func(w *simulation, i int) {
		if w.usual(); i == 5 {
			s := &w.replica.source.status
			s.NotBefore, s.NotAfter = w.now, w.now.Add(7*24*time.Hour)
			s.Renewals++
		}
	}, nil},
	{"a CA is rotated", func(w *simulation, i int) {
		w.usual()
		s := &w.replica.source.status
		switch i {
		case 1:
			s.Phase = certs.Publishing
		case 4:
			s.Phase, s.Renewals = certs.Retiring, s.Renewals+1
		case 30:
			s.Phase, s.Rotations = certs.Stable, s.Rotations+1
		}
	}, nil},
	{"the API server restarts and cancels calls", func(w *simulation, _ int) { w.usual(); w.call(webhook.Canceled, 100, time.Second/2) }, nil},
	{"probe connections end before a handshake", func(w *simulation, _ int) { w.usual(); w.replica.metrics.HandshakeFailed("probe") }, nil},

	{"a hook records a few denials", func(w *simulation, _ int) { w.usual(); w.withhold(webhook.Shadow, webhook.Denied, 3) }, nil},
	{"a hook records many more denials", func(w *simulation, i int) {
		if w.usual(); i < 46 {
			w.withhold(webhook.Shadow, webhook.Denied, 1)
		} else {
			w.withhold(webhook.Shadow, webhook.Denied, 60)
		}
	}, []string{"AdmitkitWithheldJump"}},
	{"a hook that recorded nothing records denials", func(w *simulation, i int) {
		if w.usual(); i >= 46 {
			w.withhold(webhook.Warn, webhook.Denied, 60)
		}
	}, []string{"AdmitkitWithheldJump"}},
	{"a hook goes from Shadow to Warn", func(w *simulation, i int) {
		if w.usual(); i < 46 {
			w.withhold(webhook.Shadow, webhook.Denied, 60)
		} else {
			w.withhold(webhook.Warn, webhook.Denied, 60)
		}
	}, nil},
	{"a hook goes from Enforce to Shadow", func(w *simulation, i int) {
		if w.usual(); i < 46 {
			w.call(webhook.Denied, 60, time.Millisecond)
		} else {
			w.withhold(webhook.Shadow, webhook.Denied, 60)
		}
	}, nil},
	{"a mutating hook withholds its patches", func(w *simulation, i int) {
		if w.usual(); i >= 46 {
			w.withhold(webhook.Shadow, webhook.Mutated, 60)
		}
	}, nil},
	{"one call fails in Shadow", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.withhold(webhook.Shadow, webhook.Failed, 1)
		}
	}, nil},
	{"calls fail in Shadow", func(w *simulation, _ int) { w.usual(); w.withhold(webhook.Shadow, webhook.Failed, 10) }, []string{"AdmitkitWithheldFailures"}},
	{"calls time out in Warn", func(w *simulation, _ int) { w.usual(); w.withhold(webhook.Warn, webhook.TimedOut, 10) }, []string{"AdmitkitWithheldFailures"}},
	{"one panic in Warn", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.withhold(webhook.Warn, webhook.Panicked, 1)
		}
	}, []string{"AdmitkitHandlerPanics"}},
	{"panics in Shadow", func(w *simulation, _ int) { w.usual(); w.withhold(webhook.Shadow, webhook.Panicked, 10) }, []string{"AdmitkitHandlerPanics", "AdmitkitWithheldFailures"}},
	{"calls fail in Shadow while other calls are refused", func(w *simulation, _ int) {
		w.usual()
		w.withhold(webhook.Shadow, webhook.Failed, 10)
		w.call(webhook.Refused, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsRefused", "AdmitkitWithheldFailures"}},
	{"the file of modes is invalid", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.breakModes()
		}
	}, []string{"AdmitkitModesInvalid"}},

	{"no replica", func(w *simulation, _ int) { w.replica = nil }, []string{"AdmitkitNoMetrics"}},
	{"calls fail", func(w *simulation, _ int) { w.usual(); w.call(webhook.Failed, 10, time.Millisecond) }, []string{"AdmitkitCallsFail"}},
	{"one panic", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.call(webhook.Panicked, 1, time.Millisecond)
		}
	}, []string{"AdmitkitHandlerPanics"}},
	{"panics", func(w *simulation, _ int) { w.usual(); w.call(webhook.Panicked, 10, time.Millisecond) }, []string{"AdmitkitCallsFail", "AdmitkitHandlerPanics"}},
	{"calls time out", func(w *simulation, _ int) { w.usual(); w.call(webhook.TimedOut, 10, 4500*time.Millisecond) }, []string{"AdmitkitCallsSlow", "AdmitkitCallsTimeOut"}},
	{"calls are slow", func(w *simulation, _ int) { w.usual(); w.call(webhook.Allowed, 10, 2*time.Second) }, []string{"AdmitkitCallsSlow"}},
	{"overload", func(w *simulation, _ int) { w.usual(); w.call(webhook.Shed, 300, time.Millisecond) }, []string{"AdmitkitCallsShed"}},
	{"a client without authorization calls", func(w *simulation, _ int) { w.usual(); w.call(webhook.Refused, 1, time.Millisecond) }, []string{"AdmitkitCallsRefused"}},
	// Refused, shed and canceled calls must not hide other conditions.
	{"calls fail while other calls are refused", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.Failed, 10, time.Millisecond)
		w.call(webhook.Refused, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsFail", "AdmitkitCallsRefused"}},
	{"calls fail in an overload", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.Failed, 10, time.Millisecond)
		w.call(webhook.Shed, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsFail", "AdmitkitCallsShed"}},
	{"calls fail while other calls are canceled", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.Failed, 10, time.Millisecond)
		w.call(webhook.Canceled, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsFail"}},
	{"calls time out while other calls are refused", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.TimedOut, 10, 4500*time.Millisecond)
		w.call(webhook.Refused, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsRefused", "AdmitkitCallsSlow", "AdmitkitCallsTimeOut"}},
	{"calls time out in an overload", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.TimedOut, 10, 4500*time.Millisecond)
		w.call(webhook.Shed, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsShed", "AdmitkitCallsSlow", "AdmitkitCallsTimeOut"}},
	{"calls are slow while other calls are refused", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.Allowed, 10, 2*time.Second)
		w.call(webhook.Refused, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsRefused", "AdmitkitCallsSlow"}},
	{"calls are slow in an overload", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.Allowed, 10, 2*time.Second)
		w.call(webhook.Shed, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsShed", "AdmitkitCallsSlow"}},
	{"overload while other calls are refused", func(w *simulation, _ int) {
		w.usual()
		w.call(webhook.Shed, 10, time.Millisecond)
		w.call(webhook.Refused, 2000, time.Millisecond)
	}, []string{"AdmitkitCallsRefused", "AdmitkitCallsShed"}},
	{"refused calls are slow", func(w *simulation, _ int) { w.usual(); w.call(webhook.Refused, 20, 2*time.Second) }, []string{"AdmitkitCallsRefused"}},
	{"handlers never return", func(w *simulation, _ int) { w.usual(); w.replica.load.Calls = 110 + w.replica.load.Waiting }, []string{"AdmitkitHandlersLeftBehind"}},
	{"a few handlers are late", func(w *simulation, _ int) { w.usual(); w.replica.load.Calls = 5 + w.replica.load.Waiting }, nil},
	{"many calls are in flight", func(w *simulation, _ int) { w.usual(); w.replica.load.Calls, w.replica.load.Waiting = 900, 900 }, nil},
	{"all connections are taken", func(w *simulation, _ int) { w.usual(); w.replica.load.Connections = 2000 }, []string{"AdmitkitConnectionsAtLimit"}},
	{"all connections are taken for a while", func(w *simulation, i int) {
		w.usual()
		w.replica.load.Connections = 4
		if i%15 < 5 {
			w.replica.load.Connections = 2000
		}
	}, nil},
	{"there is no limit", func(w *simulation, _ int) {
		w.usual()
		w.replica.load.Calls, w.replica.load.MaxCalls = 5000, math.MaxInt
		w.replica.load.Connections, w.replica.load.MaxConnections = 5000, math.MaxInt
	}, nil},
	{"all calls are refused", func(w *simulation, _ int) { w.call(webhook.Refused, 20, time.Millisecond) }, []string{"AdmitkitCallsRefused"}},

	{"the caBundle is empty", func(w *simulation, _ int) {
		w.replica.source.status.Trusted = false
		w.replica.metrics.HandshakeFailed("untrusted")
	}, []string{"AdmitkitHandshakesUntrusted", "AdmitkitNotTrusted"}},
	{"cert-manager does not renew", func(w *simulation, _ int) {
		w.usual()
		s := &w.replica.source.status
		s.Phase, s.CANotAfter = "", time.Time{}
		s.NotBefore, s.NotAfter = w.now.Add(-80*24*time.Hour), w.now.Add(10*24*time.Hour)
	}, []string{"AdmitkitCertificateNotRenewed"}},
	{"the certificate has expired", func(w *simulation, _ int) {
		w.usual()
		s := &w.replica.source.status
		s.NotAfter = w.now.Add(-time.Minute)
	}, []string{"AdmitkitCertificateExpires", "AdmitkitCertificateNotRenewed"}},
	{"the CA is not replaced", func(w *simulation, _ int) {
		w.usual()
		w.replica.source.status.CANotAfter = w.now.Add(24 * time.Hour)
	}, []string{"AdmitkitCAExpires"}},
	{"a target is missing", func(w *simulation, _ int) {
		w.usual()
		w.replica.source.status.Phase = certs.Publishing
	}, []string{"AdmitkitRotationStuck"}},
	{"a rollout takes its time", func(w *simulation, i int) {
		w.usual()
		switch i {
		case 0:
			w.replica.install.phase = install.Installing
		case 1:
			w.replica.install.phase = install.FailingOpen
		case 20:
			w.replica.install.phase = install.Installed
		}
	}, nil},
	{"no installation was requested, or it has ended", func(w *simulation, i int) {
		w.usual()
		w.replica.install.phase = []install.Phase{install.Idle, install.Superseded, install.Removed}[i/17]
	}, nil},
	{"the webhooks are never promoted", func(w *simulation, _ int) { w.usual(); w.replica.install.phase = install.FailingOpen }, []string{"AdmitkitNotInstalled"}},
	{"the webhooks cannot be stored", func(w *simulation, _ int) { w.usual(); w.replica.install.phase = install.Installing }, []string{"AdmitkitNotInstalled"}},
	{"the webhooks are deleted", func(w *simulation, _ int) { w.usual(); w.replica.install.phase = install.Removed }, []string{"AdmitkitNotInstalled"}},
	{"a rollout was taken back", func(w *simulation, _ int) { w.usual(); w.replica.install.phase = install.Superseded }, []string{"AdmitkitNotInstalled"}},
	{"a source that cannot read its file", func(w *simulation, _ int) {
		w.usual()
		w.replica.source.status.Err = errors.New("open tls.crt: no such file")
	}, []string{"AdmitkitCertificateUnhealthy"}},
	{"a clock is fast", func(w *simulation, _ int) {
		w.usual()
		w.replica.source.status.ClockAhead = 40 * time.Minute
	}, []string{"AdmitkitClockDiffers"}},
	{"a clock is slow", func(w *simulation, _ int) {
		w.usual()
		w.replica.source.status.ClockAhead = -40 * time.Minute
	}, []string{"AdmitkitClockDiffers"}},
	{"clocks differ a little", func(w *simulation, _ int) {
		w.usual()
		w.replica.source.status.ClockAhead = 10 * time.Minute
	}, nil},
	{"the first request that passes unseen", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.failsOpen()
		}
	}, []string{"WebhookFailsOpen"}},
	{"requests pass unseen", func(w *simulation, _ int) { w.usual(); w.failsOpen() }, []string{"WebhookFailsOpen"}},
	{"one request is rejected", func(w *simulation, i int) {
		if w.usual(); i == 0 {
			w.failsClosed()
		}
	}, nil},
	{"requests are rejected", func(w *simulation, _ int) { w.usual(); w.failsClosed() }, []string{"WebhookFailsClosed"}},
}

func TestEachScenarioFiresItsAlerts(t *testing.T) {
	rules := readRules(t)
	fired := map[string]bool{}
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			w := newSimulation(t)
			since := map[string]time.Time{}
			got := map[string]bool{}
			for i := -10; i < 50; i++ {
				if i < 0 {
					w.usual()
				} else {
					scenario.minute(w, i)
				}
				w.minute()
				w.evaluate(rules, since, got)
			}
			if alerts := slices.Sorted(maps.Keys(got)); !slices.Equal(alerts, scenario.want) {
				t.Errorf("fired %q, want %q", alerts, scenario.want)
			}
			maps.Copy(fired, got)
		})
	}
	for _, rule := range rules {
		if !fired[rule.Alert] {
			t.Errorf("no scenario fires %s", rule.Alert)
		}
	}
}

// everything returns a simulation in which each metric has all its label values.
func everything(t testing.TB) *simulation {
	w := newSimulation(t)
	for range 10 {
		w.usual()
		for _, outcome := range []webhook.Outcome{webhook.Failed, webhook.Panicked, webhook.TimedOut, webhook.Shed, webhook.Refused, webhook.Canceled} {
			w.call(outcome, 1, time.Second)
		}
		w.withhold(webhook.Shadow, webhook.Denied, 1)
		w.withhold(webhook.Shadow, webhook.Mutated, 1)
		w.replica.metrics.HandshakeFailed("untrusted")
		w.failsOpen()
		w.failsClosed()
		w.minute()
	}
	return w
}

func TestRulesUseExistingMetrics(t *testing.T) {
	names := everything(t).store.catalogue()
	for _, rule := range readRules(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			names.check(t, rule.Expr)
			if s := rule.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("severity %q", s)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Error("no summary or no description")
			}
			// A label in a summary must be a label of the result.
			for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations["summary"], -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + label[1] + `\b`).MatchString(rule.Expr) {
					t.Errorf("the summary names the label %s, which the expression does not keep", label[1])
				}
			}
		})
	}
}

// forAlerts are metrics that only alerts use, so they need no panel.
var forAlerts = []string{"admitkit_certificate_not_before_timestamp_seconds", "admitkit_certificate_clock_ahead_seconds", "admitkit_rollout_file_valid"}

func TestDashboardShowsEveryMetric(t *testing.T) {
	w, d := everything(t), readDashboard(t)
	names := w.store.catalogue()
	shown := map[string]bool{}
	for _, p := range d.Panels {
		t.Run(p.Title, func(t *testing.T) {
			if p.Type == "row" {
				return
			}
			if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
				t.Error("a panel needs a description, a unit and a query")
			}
			for _, target := range p.Targets {
				expr := d.filled(t, target.Expr)
				for _, name := range names.check(t, expr) {
					shown[name] = true
				}
				result := w.store.query(t, expr, w.now)
				if len(result) == 0 {
					t.Errorf("%s\nhas no result", expr)
				}
				for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
					for _, sample := range result {
						if !sample.Metric.Has(label[1]) {
							t.Errorf("%s\nhas no label %s for the legend", expr, label[1])
						}
					}
				}
			}
		})
	}
	for name, values := range names {
		if strings.HasPrefix(name, "admitkit_") && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") &&
			!slices.Contains(forAlerts, name) && !shown[name] {
			t.Errorf("no panel shows %s %v", name, slices.Sorted(maps.Keys(values)))
		}
	}
}

// TestPanelsDoNotOverlap checks the layout, because Grafana accepts overlapping panels and shows only one.
func TestPanelsDoNotOverlap(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" {
		t.Error("no uid or no title")
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q at %v overlaps %q, or exceeds the right edge", p.Title, g, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	for _, variable := range d.Templating.List {
		if m := regexp.MustCompile(`^label_values\((\w+)`).FindStringSubmatch(variable.Query); m != nil && m[1] != "admitkit_calls_total" {
			t.Errorf("the values of $%s come from %s", variable.Name, m[1])
		}
	}
}

// TestChecksFindWrongNames checks that catalogue.check reports unknown names.
func TestChecksFindWrongNames(t *testing.T) {
	names := everything(t).store.catalogue()
	for _, expr := range []string{
		`rate(admitkit_call_total[5m])`,
		`admitkit_calls_total{hook="a"}`,
		`admitkit_calls_total{outcome=~"failed|crashed"}`,
		`sum by (operation) (rate(admitkit_calls_total[5m]))`,
		`apiserver_admission_webhook_rejection_count{error_type="no_eror"}`,
	} {
		found := &recorder{TB: t}
		if names.check(found, expr); found.errors == 0 {
			t.Errorf("the check accepts\n%s", expr)
		}
	}
}

// A recorder is a testing.TB that counts errors instead of failing the test.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Errorf(string, ...any) { r.errors++ }
