// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// expressions returns every expression of the rules, the dashboard and the page, by location.
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
	const page = "../../docs/monitoring/README.md"
	for _, query := range queriesOf(t, page) {
		all[page+": "+query] = query
	}
	return all
}

// TestRefusedCallsAreNotInRatios checks that ratios and duration quantiles leave out calls that were refused,
// shed or canceled. Clients can cause many such fast calls, which would hide failures.
func TestRefusedCallsAreNotInRatios(t *testing.T) {
	ratios, quantiles := 0, 0
	for where, text := range expressions(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Fatalf("%s: %s\n%v", where, text, err)
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.BinaryExpr:
				if n.Op == parser.DIV {
					ratios += excludes(t, where, n.RHS, "admitkit_calls_total", "refused", "canceled")
					ratios += excludes(t, where, n, "admitkit_call_duration_seconds_sum", "refused", "shed")
					ratios += excludes(t, where, n, "admitkit_call_duration_seconds_count", "refused", "shed")
				}
			case *parser.Call:
				if n.Func.Name == "histogram_quantile" {
					quantiles += excludes(t, where, n, "admitkit_call_duration_seconds_bucket", "refused", "shed")
				}
			}
			return nil
		})
	}
	if ratios < 8 || quantiles < 3 {
		t.Errorf("the test found only %d ratios and %d quantiles", ratios, quantiles)
	}
}

// excludes checks that every selector of the metric excludes calls with these outcomes. It returns
// the number of selectors.
func excludes(t *testing.T, where string, expr parser.Expr, metric string, outcomes ...string) (seen int) {
	t.Helper()
	for _, selector := range parser.ExtractSelectors(expr) {
		if selectorName(selector) != metric {
			continue
		}
		seen++
		for _, outcome := range outcomes {
			if takes(selector, "outcome", outcome) {
				t.Errorf("%s\nmust not count calls with the outcome %s:\n%s", where, outcome, expr)
			}
		}
	}
	return seen
}

// takes reports whether a selector can match series in which the label has the value.
func takes(selector []*labels.Matcher, label, value string) bool {
	for _, m := range selector {
		if m.Name == label && !m.Matches(value) {
			return false
		}
	}
	return true
}
