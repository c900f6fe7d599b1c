// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// expressions are all that we hand out, by where.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, rule := range readRules(t) {
		all[rule.Alert] = rule.Expr
	}
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = d.filled(t, target.Expr)
		}
	}
	for _, page := range []string{"../../docs/monitoring/README.md", "../../docs/operations.md"} {
		for _, query := range queriesOf(t, page) {
			all[page+": "+query] = query
		}
	}
	return all
}

// Anybody can have calls refused, and they take no time: in what others are divided by, or in a
// quantile of durations, they would hide trouble.
func TestStrangersDiluteNothing(t *testing.T) {
	shares, quantiles := 0, 0
	for where, text := range expressions(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Fatalf("%s: %s\n%v", where, text, err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.BinaryExpr:
				if n.Op == parser.DIV {
					shares += excludes(t, where, n.RHS, "admitkit_calls_total", "refused")
					shares += excludes(t, where, n, "admitkit_call_duration_seconds_sum", "refused", "shed")
					shares += excludes(t, where, n, "admitkit_call_duration_seconds_count", "refused", "shed")
				}
			case *parser.Call:
				if n.Func.Name == "histogram_quantile" {
					quantiles += excludes(t, where, n, "admitkit_call_duration_seconds_bucket", "refused", "shed")
				}
			}
			return nil
		})
	}
	if shares < 8 || quantiles < 4 {
		t.Errorf("looked at %d shares and %d quantiles only", shares, quantiles)
	}
}

// excludes reports selectors of a metric that take calls of an outcome, and counts selectors.
func excludes(t *testing.T, where string, expr parser.Expr, metric string, outcomes ...string) (seen int) {
	t.Helper()
	for _, selector := range parser.ExtractSelectors(expr) {
		if selectorName(selector) != metric {
			continue
		}
		seen++
		for _, outcome := range outcomes {
			if takes(selector, "outcome", outcome) {
				t.Errorf("%s\ncounts calls that are %s:\n%s", where, outcome, expr)
			}
		}
	}
	return seen
}

func takes(selector []*labels.Matcher, label, value string) bool {
	for _, m := range selector {
		if m.Name == label && !m.Matches(value) {
			return false
		}
	}
	return true
}

// A program that starts has its marker hooks deny, which is nobody's denial.
func TestMarkersAreNoDenials(t *testing.T) {
	w := newWorld(t)
	denials := map[string]string{}
	for where, text := range expressions(t) {
		if regexp.MustCompile(`outcome=~?"denied"`).MatchString(text) {
			denials[where] = text
		}
	}
	if len(denials) != 2 {
		t.Fatalf("found %d expressions about denials, want a panel's and a query: %q", len(denials), denials)
	}
	installer, err := install.New(install.Options{
		Config: &rest.Config{Host: "https://127.0.0.1:6443"},
		Configuration: webhook.ConfigurationOptions{
			Name: "policy.example.com", Service: &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hooks"},
		},
	}, webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	markers := 0
	for range 70 {
		w.usual()
		for _, hook := range installer.Hooks() {
			if strings.HasPrefix(hook.Name(), "marker.") {
				markers++
				_, end := w.replica.metrics.Begin(t.Context(), hook, nil)
				end(&webhook.Call{Hook: hook.Name(), Mutating: hook.Mutating(), Outcome: webhook.Denied, Duration: time.Millisecond})
			}
		}
		w.minute()
	}
	if markers == 0 {
		t.Fatal("there are no marker hooks")
	}
	for where, text := range denials {
		for _, expr := range operands(t, text) {
			result := w.store.query(t, expr, w.now)
			for _, sample := range result {
				if name := sample.Metric.Get("webhook"); name != w.name {
					t.Errorf("%s\nshows %s", where, name)
				}
			}
			if len(result) != 1 {
				t.Errorf("%s\nhas %d results, want that of the hook", where, len(result))
			}
		}
	}
}
