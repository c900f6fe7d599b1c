// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// readRules returns the alert rules. It fails the test if Prometheus would reject the rule file.
func readRules(t testing.TB) []rulefmt.Rule {
	t.Helper()
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             map[string]any
	}
	text, err := os.ReadFile("../../docs/monitoring/rules.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" || object.Metadata.Name == "" {
		t.Errorf("not a PrometheusRule: %s %s %q", object.APIVersion, object.Kind, object.Metadata.Name)
	}
	plain, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(plain, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// A dashboard has the fields of Grafana's format that the tests read.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t testing.TB) dashboard {
	t.Helper()
	var d dashboard
	text, err := os.ReadFile("../../docs/monitoring/dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filled returns an expression as Grafana sends it if all variables select everything.
func (d dashboard) filled(t testing.TB, expr string) string {
	t.Helper()
	expr = strings.ReplaceAll(expr, "$__rate_interval", "4m")
	for _, variable := range d.Templating.List {
		expr = strings.ReplaceAll(expr, "$"+variable.Name, ".*")
	}
	if strings.Contains(expr, "$") {
		t.Errorf("%s\nuses a variable that the dashboard lacks", expr)
	}
	return expr
}
