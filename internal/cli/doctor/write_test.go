// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/pkg/lint"
)

// aReport has a part of each kind, with text from the cluster that tries to control the terminal.
func aReport() *Report {
	hostile := "eve\x1b[2J\n\u202ereversed"
	return &Report{
		Configurations: 1, Webhooks: 2, Conversions: 1, APIServices: 1, Ignored: 1, failOn: lint.Warning,
		Findings: []doctor.Finding{
			{Check: "not-tls", Severity: lint.Error, Title: "the server does not speak TLS", Subject: "Service shop/hook", Rejects: true, Evidence: []string{hostile}, Fix: strings.Repeat("words ", 40),
				Callers:  []doctor.Caller{{Object: "ValidatingWebhookConfiguration/shop", Webhook: "a.example.com", FailurePolicy: "Fail"}, {Object: "CustomResourceDefinition/widgets.example.com", FailurePolicy: "Fail"}},
				Commands: []string{"kubectl get pods"}},
			{Check: "not-verified", Severity: lint.Advice, Title: "not verified", Subject: "APIService/v1.example.com", Callers: []doctor.Caller{{Object: "APIService/v1.example.com"}}, Fix: "Fix it."},
		},
		Repair:     &doctor.Repair{Objects: []string{"a"}, You: no, Others: []string{"User a", hostile}, Steps: []doctor.Step{{Text: strings.Repeat("words ", 30), Commands: []string{"kubectl"}}}},
		NotChecked: []Gap{{Verb: "list", Resource: "pods", Namespaces: []string{"a", "b"}, Forbidden: true}, {Verb: "get", Resource: "/metrics", Error: hostile}},
		NotProbed:  []NotProbed{{Webhooks: []string{"b.example.com"}, Reason: "no reason"}},
		Traffic:    &Traffic{Servers: 1, Known: 2, Calls: []Row{{Webhook: hostile, Calls: 1}, {Webhook: strings.Repeat("long.", 20), Calls: 1}}},
	}
}

func TestText(t *testing.T) {
	var text, coloured strings.Builder
	must(t, errors.Join(aReport().Write("text", &text, screen.Painter{}), aReport().Write("text", &coloured, screen.Painter{On: true})))
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && len(strings.Fields(line)) > 2 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.ContainsAny(text.String(), "\x1b\u202e") {
		t.Errorf("the text controls the terminal:\n%q", text.String())
	}
	for _, want := range []string{
		"you lack the permission to list pods in namespace a and b", "you may not do this. By RBAC, these may: User a", "no reason: b.example.com",
		"1 error, 1 piece of advice\n  of 2 webhooks in 1 configuration, 1 conversion webhook, 1 aggregated API\n     service (1 ignored)\n",
		"Used by: a.example.com of ValidatingWebhookConfiguration/shop (Fail)\n           CustomResourceDefinition/widgets.example.com\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
	if !strings.Contains(coloured.String(), "\x1b[31mERROR\x1b[0m") {
		t.Errorf("an error is not red: %q", coloured.String()[:40])
	}
}

func TestJUnit(t *testing.T) {
	var text strings.Builder
	must(t, aReport().Write("junit", &text, screen.Painter{}))
	for _, want := range []string{`tests="4" failures="1" skipped="2"`, `<failure type="not-tls"`, `classname="APIService/v1.example.com" name="not-verified"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the JUnit report lacks %q:\n%s", want, &text)
		}
	}
	text.Reset()
	must(t, (&Report{}).Write("junit", &text, screen.Painter{}))
	if !strings.Contains(text.String(), `tests="1" failures="0"`) {
		t.Errorf("a report without findings is\n%s", &text)
	}
}

func TestJSON(t *testing.T) {
	var text strings.Builder
	must(t, aReport().Write("json", &text, screen.Painter{}))
	var decoded struct {
		Findings []struct {
			Check, Severity, Subject string
			Rejects                  bool
			Callers                  []map[string]string
		}
		NotChecked []struct{ Verb, Resource string }
	}
	must(t, json.Unmarshal([]byte(text.String()), &decoded))
	f := decoded.Findings[0]
	if f.Check != "not-tls" || f.Severity != "error" || !f.Rejects || f.Callers[0]["failurePolicy"] != "Fail" || decoded.NotChecked[0].Verb != "list" {
		t.Errorf("the JSON report is\n%s", &text)
	}
}

func TestNotAnAPIServer(t *testing.T) {
	for reason, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another server":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "is not an API server"},
		"unknown credentials":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "does not accept your credentials"},
		"may not read /version": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, ""},
		"a server":              {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"gitVersion":"v1.20.0"}`)) }, ""},
	} {
		server := httptest.NewServer(row.answer)
		_, err := versionOf(t.Context(), &rest.Config{Host: server.URL})
		server.Close()
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", reason, err, row.want)
		}
	}
}

func TestProxiedOf(t *testing.T) {
	status := func(reason, message string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"` + message + `","details":{"kind":"services"}}`
	}
	for _, row := range []struct {
		reason string
		code   int
		body   string
		want   doctor.Problem
		err    bool
	}{
		{"the webhook answers", 405, "method not allowed", 0, false},
		{"the webhook answers with a Status", 405, `{"kind":"Status","reason":"MethodNotAllowed","message":"POST only"}`, 0, false},
		{"the webhook is not available itself", 503, "busy", 0, false},
		{"nothing listens", 503, status("ServiceUnavailable", dialing+"dial tcp 10.0.0.1:9443: connect: connection refused"), doctor.Refused, false},
		{"nothing answers", 503, status("ServiceUnavailable", dialing+"dial tcp 10.0.0.1:9443: i/o timeout"), doctor.Silent, false},
		{"a proxy in between fails", 503, status("ServiceUnavailable", dialing+"proxy error"), doctor.Broken, false},
		{"it connects, and the handshake fails", 503, status("ServiceUnavailable", dialing+"tls: first record does not look like a TLS handshake"), 0, false},
		{"it connects, and the server wants a client certificate", 503, status("ServiceUnavailable", dialing+"remote error: tls: certificate required"), 0, false},
		{"it connects, and the server speaks HTTP", 503, status("ServiceUnavailable", dialing+"http: server gave HTTP response to HTTPS client"), 0, false},
		{"no Endpoints", 503, status("ServiceUnavailable", `no endpoints available for service \"hook\"`), 0, true},
		{"no Endpoints object", 404, status("NotFound", "not found"), 0, true},
		{"forbidden", 403, status("Forbidden", "no"), 0, true},
	} {
		got, err := proxiedOf(row.code, []byte(row.body))
		if got.Problem != row.want || (err != nil) != row.err {
			t.Errorf("%s: %+v, %v, want %v and an error: %v", row.reason, got, err, row.want, row.err)
		}
	}
}
