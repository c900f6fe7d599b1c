// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A catalogue has the values of each label of each metric.
type catalogue map[string]map[string][]string

func (s *store) catalogue() catalogue {
	c := catalogue{}
	for _, one := range s.series {
		name := one.labels.Get(model.MetricNameLabel)
		if c[name] == nil {
			c[name] = map[string][]string{}
		}
		one.labels.Range(func(l labels.Label) { c[name][l.Name] = append(c[name][l.Name], l.Value) })
	}
	return c
}

// words matches a regular expression that consists of alternative words.
var words = regexp.MustCompile(`^[a-z_]+(\|[a-z_]+)*$`)

// check fails the test if an expression uses a metric, a label or a label value that the code does not define. It
// returns the metrics in the expression.
func (c catalogue) check(t testing.TB, text string) (used []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			known := c[n.Name]
			if used = append(used, n.Name); known == nil {
				t.Errorf("%s\nuses %s, which is not a metric", text, n.Name)
				return nil
			}
			for _, m := range n.LabelMatchers {
				if m.Name == model.MetricNameLabel {
					continue
				}
				if known[m.Name] == nil && m.Value != ".*" { // the API server's metrics have no namespace label, so the dashboard sends .*
					t.Errorf("%s\nuses %s, which is not a label of %s", text, m.Name, n.Name)
				}
				if words.MatchString(m.Value) {
					for value := range strings.SplitSeq(m.Value, "|") {
						if !slices.Contains(known[m.Name], value) {
							t.Errorf("%s\nuses %s %q, which %s never has", text, m.Name, value, n.Name)
						}
					}
				}
			}
		case *parser.AggregateExpr:
			for _, selector := range parser.ExtractSelectors(n.Expr) {
				for _, label := range n.Grouping {
					if known := c[selectorName(selector)]; known != nil && known[label] == nil {
						t.Errorf("%s\ngroups by %s, which is not a label of %s", text, label, selectorName(selector))
					}
				}
			}
		}
		return nil
	})
	return used
}

func selectorName(selector []*labels.Matcher) string {
	for _, m := range selector {
		if m.Name == model.MetricNameLabel {
			return m.Value
		}
	}
	return ""
}
