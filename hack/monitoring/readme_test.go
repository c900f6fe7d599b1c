// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageNamesEveryMetric checks that the tables of the page list all metrics with their types and
// labels.
func TestPageNamesEveryMetric(t *testing.T) {
	families, err := everything(t).replica.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, family := range families {
		names := map[string]bool{}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				names[label.GetName()] = true
			}
		}
		want = append(want, fmt.Sprintf("%s %s %s", family.GetName(), strings.ToLower(family.GetType().String()), slices.Sorted(maps.Keys(names))))
	}
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(admitkit_\\w+)` \\| (\\w+) \\| ([^|]*)\\|").FindAllStringSubmatch(readme(t), -1) {
		names := strings.FieldsFunc(row[3], func(r rune) bool { return strings.ContainsRune("` ,", r) })
		slices.Sort(names)
		got = append(got, fmt.Sprintf("%s %s %s", row[1], row[2], names))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nthe code has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestQueriesOfThePageHaveResults(t *testing.T) {
	names := everything(t).store.catalogue()
	w := everything(t)
	for _, query := range queriesOf(t, "../../docs/monitoring/README.md") {
		names.check(t, query)
		// A comparison may have no result, but its operands must have one.
		for _, expr := range operands(t, query) {
			if result := w.store.query(t, expr, w.now); len(result) == 0 {
				t.Errorf("%s\nhas no result", expr)
			}
		}
	}
}

// queriesOf returns the PromQL queries in the code blocks of a page.
func queriesOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, query := range regexp.MustCompile("(?ms)^```promql\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		queries = append(queries, query[1])
	}
	if len(queries) == 0 {
		t.Fatalf("%s has no queries", page)
	}
	return queries
}

// operands returns the vectors that an expression compares, or the whole expression if it compares none.
func operands(t *testing.T, text string) []string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	if b, ok := expr.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
		return []string{b.LHS.String()}
	}
	return []string{text}
}

// TestPageNamesEveryClass checks that the page lists the handshake classes of pkg/webhook.
func TestPageNamesEveryClass(t *testing.T) {
	source, err := os.ReadFile("../../pkg/webhook/internal/server/connectionlog.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`handshake\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(constants) < 3 {
		t.Fatalf("found no classes in the source: %q", constants)
	}
	_, classes, _ := strings.Cut(readme(t), "The classes of handshakes are ")
	classes, _, _ = strings.Cut(classes, "\n\n")
	for _, constant := range constants {
		if !strings.Contains(classes, "`"+constant[1]+"`") {
			t.Errorf("the page does not name the class %s", constant[1])
		}
	}
}
