// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/junit"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/lint"
)

const hooks = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: sidecar
  annotations:
    lint.admitkit.dev/ignore: AK402=it asks a registry
webhooks:
- name: sidecar.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 30
  clientConfig:
    service: {namespace: sidecar, name: webhook, path: /mutate}
  rules:
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}
`

// run lints a file with this name and text, in a new temporary folder.
func run(t *testing.T, file, text string, change func(*Options)) (*Report, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Paths: []string{file}, Severity: "advice", FailOn: "warning"}
	if change != nil {
		change(&o)
	}
	return Run(t.Context(), &screen.Screen{In: strings.NewReader(text), Err: &bytes.Buffer{}}, o)
}

func TestSteps(t *testing.T) {
	rows := []struct {
		path, reason string
		want         []any
	}{
		{"webhooks[0].rules[1].resources[2]", "numbers are elements", []any{"webhooks", 0, "rules", 1, "resources", 2}},
		{"metadata.annotations[lint.admitkit.dev/ignore]", "other keys are fields, dots and all", []any{"metadata", "annotations", "lint.admitkit.dev/ignore"}},
		{"", "no path is the object", nil},
		{"webhooks..a", "no path that we make", []any{"webhooks"}},
	}
	for _, row := range rows {
		if diff := cmp.Diff(row.want, stepsOf(row.path)); diff != "" {
			t.Errorf("%s: %s\n%s", row.path, row.reason, diff)
		}
	}
}

// Patterns that SARIF requires for texts.
const (
	sarifLevel = `^(none|note|warning|error)$`
	sarifURI   = `^[a-z]+:|^[^:]+$`
)

// TestSARIF checks the output against SARIF 2.1.0 (OASIS): required fields, patterns of texts, valid indices, and no
// unknown properties.
func TestSARIF(t *testing.T) {
	report, err := run(t, "some folder/hooks.yaml", hooks, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.Write("sarif", &text, screen.Painter{}); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	decoder := json.NewDecoder(bytes.NewReader(text.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "sarif-schema-2.1.0.json") || len(log.Runs) != 1 {
		t.Fatalf("%+v", log)
	}
	run := log.Runs[0]
	matches(t, "informationUri", run.Tool.Driver.InformationURI, `^https://`)
	ids := map[string]bool{}
	for _, rule := range run.Tool.Driver.Rules {
		if ids[rule.ID] || rule.ID == "" {
			t.Errorf("rule %q: ids are unique", rule.ID)
		}
		ids[rule.ID] = true
		for _, m := range []sarifMessage{rule.ShortDescription, rule.FullDescription, rule.Help} {
			matches(t, "text", m.Text, `.`)
		}
		matches(t, "helpUri", rule.HelpURI, `^https://`)
		matches(t, "level", rule.Default.Level, sarifLevel)
	}
	suppressed := 0
	for _, result := range run.Results {
		if result.RuleIndex < 0 || result.RuleIndex >= len(run.Tool.Driver.Rules) || run.Tool.Driver.Rules[result.RuleIndex].ID != result.RuleID {
			t.Errorf("ruleIndex %d is not %s", result.RuleIndex, result.RuleID)
		}
		matches(t, "level", result.Level, sarifLevel)
		matches(t, "message", result.Message.Text, `\. Fix: `)
		if len(result.Locations) != 1 || result.Locations[0].Physical == nil || result.Locations[0].Physical.Region.StartLine < 1 {
			t.Fatalf("%+v", result)
		}
		matches(t, "uri", result.Locations[0].Physical.Artifact.URI, sarifURI)
		matches(t, "uri", result.Locations[0].Physical.Artifact.URI, `^some%20folder/hooks.yaml$`)
		for _, s := range result.Suppressions {
			suppressed++
			matches(t, "kind", s.Kind, `^(inSource|external)$`)
			matches(t, "justification", s.Justification, `^it asks a registry$`)
		}
	}
	if len(run.Results) != 3 || suppressed != 1 {
		t.Errorf("%d results, %d suppressed", len(run.Results), suppressed)
	}
	if strings.Contains(text.String(), "null") {
		t.Error("SARIF does not allow null here")
	}
}

func matches(t *testing.T, what, text, form string) {
	t.Helper()
	if !regexp.MustCompile(form).MatchString(text) {
		t.Errorf("%s is %q, want %s", what, text, form)
	}
}

func TestURIs(t *testing.T) {
	for file, want := range map[string]string{"a.yaml": "a.yaml", "./b/c d.yaml": "b/c%20d.yaml", "/x/y.yaml": "file:///x/y.yaml", "a:b.yaml": "./a:b.yaml"} {
		if got := uriOf(file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
}

func TestSuppressedByTheFile(t *testing.T) {
	report, err := run(t, "hooks.yaml", hooks, func(o *Options) {
		const text = "# ours\nignore:\n- rule: ak203\n  reason: on purpose\n- rule: AK501\n  reason: gone\n"
		if err := os.WriteFile(DefaultConfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		place := f.where()
		if f.external {
			place += " external"
		}
		got = append(got, f.Rule+" "+place)
	}
	want := []string{"AK402 hooks.yaml:11", "AK201 hooks.yaml:15", "AK203 hooks.yaml:15 external", "AK903 .admitkit-lint.yaml:5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if report.Suppressed != 2 || !report.Failed() {
		t.Errorf("%+v", report)
	}
}

// TestForms checks that the JSON and JUnit output of a report can be decoded. Control characters must not make the XML
// invalid.
func TestForms(t *testing.T) {
	report, err := run(t, "hooks.yaml", strings.Replace(hooks, "name: sidecar\n", "name: \"sid\\x01ecar\"\n", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.Write("junit", &text, screen.Painter{}); err != nil {
		t.Fatal(err)
	}
	var suites junit.Suites
	if err := xml.Unmarshal(text.Bytes(), &suites); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if suites.Suite.Tests != len(report.Findings) || suites.Suite.Skipped != 1 || suites.Suite.Failures != report.Errors+report.Warnings {
		t.Errorf("%+v", suites.Suite)
	}
	text.Reset()
	if err := report.Write("json", &text, screen.Painter{}); err != nil {
		t.Fatal(err)
	}
	again := &Report{}
	if err := json.Unmarshal(text.Bytes(), again); err != nil || len(again.Findings) != len(report.Findings) {
		t.Errorf("%v: %s", err, text.String())
	}
}

// TestTextFitsTheTerminal checks that lines have at most 80 columns, except locations and single long words.
func TestTextFitsTheTerminal(t *testing.T) {
	report, err := run(t, "hooks.yaml", hooks, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, write := range []func() error{
		func() error { return report.Write("text", &text, screen.Painter{}) },
		func() error { return WriteRules("text", &text, screen.Painter{}) },
		func() error {
			for _, rule := range lint.Rules() {
				if err := WriteRule(&rule, "text", &text, screen.Painter{}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(text.String()) {
		if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > width && !strings.Contains(line, "https://") {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestProbe checks that probe returns the certificate of a server that it does not trust.
func TestProbe(t *testing.T) {
	server := httptest.NewTLSServer(nil) // its certificate is for example.com and loopback
	defer server.Close()
	report, err := run(t, "hooks.yaml", hooks, func(o *Options) { o.Probe = []string{"sidecar.example.com=" + server.Listener.Addr().String()} })
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range report.Findings {
		found = found || f.Rule == "AK508"
	}
	if !found {
		t.Errorf("%+v", report.Findings)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = silent.Close() // so that no process listens there
	_, err = run(t, "hooks.yaml", hooks, func(o *Options) { o.Probe = []string{silent.Addr().String()} })
	if err == nil || !strings.HasPrefix(err.Error(), "--probe="+silent.Addr().String()+": ") {
		t.Errorf("got %v", err)
	}
	_, err = run(t, "hooks.yaml", hooks, func(o *Options) {
		o.Probe = []string{server.Listener.Addr().String(), server.Listener.Addr().String()}
	})
	if err == nil || len(problem.Hints(err)) == 0 {
		t.Errorf("got %v", err)
	}
}

// TestInterrupted checks that Ctrl-C ends a run that waits for standard input.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	defer func() { _ = out.Close() }() // so that the reader ends
	time.AfterFunc(10*time.Millisecond, cancel)
	o := Options{Paths: []string{"-"}, Severity: "advice", FailOn: "warning"}
	if _, err := Run(ctx, &screen.Screen{In: in, Err: &bytes.Buffer{}}, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestPlacesAreLines checks that line breaks in names of files, objects and webhooks cannot forge another finding.
func TestPlacesAreLines(t *testing.T) {
	for _, f := range []Finding{
		{File: "a\nb", Line: 3}, {Finding: lint.Finding{Object: "a\nb"}}, {Finding: lint.Finding{Webhook: "a\nb"}}, {Finding: lint.Finding{Path: "a\nb"}},
	} {
		if text := f.where() + f.about(); strings.Contains(text, "\n") {
			t.Errorf("%+v: %q", f, text)
		}
	}
}

// These are the parts of SARIF 2.1.0 (OASIS) that code scanners use for results.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string        `json:"id"`
		ShortDescription sarifMessage  `json:"shortDescription"`
		FullDescription  sarifMessage  `json:"fullDescription"`
		Help             sarifMessage  `json:"help"`
		HelpURI          string        `json:"helpUri"`
		Default          sarifSeverity `json:"defaultConfiguration"`
	}
	sarifSeverity struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)
