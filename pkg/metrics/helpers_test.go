// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func mutating(name string) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
}

func validating(name string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: name, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods"))},
		func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
}

func newMetrics(t testing.TB, reg prometheus.Registerer, o metrics.Options) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(reg, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// observe passes one call to an observer: it calls Begin, and then the function that Begin returned.
func observe(o webhook.Observer, h *webhook.Hook, c webhook.Observation) {
	_, end := o.Begin(context.Background(), h, &http.Request{})
	end(&c)
}

// scrape returns the values of all series, by series name.
func scrape(t testing.TB, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("the scrape is answered %d: %s", answer.Code, answer.Body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[line[:at]] = value
	}
	return all
}

// check reports each series of want that the scrape lacks, or that has another value in it.
func check(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; !ok || value != want[name] {
			t.Errorf("%s is %v (there: %v), want %v", name, value, ok, want[name])
		}
	}
}

// about returns the names of the scraped series that contain all parts.
func about(got map[string]float64, parts ...string) []string {
	var names []string
	for name := range got {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(name, part) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// constants returns the values of the string constants of a type in a package of this module.
func constants(t *testing.T, pkg, typeName string) []string {
	t.Helper()
	var values []string
	paths, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || fmt.Sprint(spec.Type) != typeName {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, text)
				}
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Fatalf("no constants of type %s in pkg/%s", typeName, pkg)
	}
	slices.Sort(values)
	return values
}
