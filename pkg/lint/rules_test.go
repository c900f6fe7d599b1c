// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A row is a YAML text that breaks a rule, or a similar text that does not break it. Most rows replace lines of a clean
// configuration, to stay short.
type row struct {
	rule   string
	breaks bool
	reason string
	text   string
	// expected path of the finding; empty for any
	path     string
	severity Severity // expected severity; empty for any
	message  string   // expected part of the message
	options  Options
	serving  []*x509.Certificate
}

// The clean configurations break no rule.
const cleanMutating = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: sidecar
  annotations: {}
webhooks:
- name: sidecar.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  matchPolicy: Equivalent
  reinvocationPolicy: Never
  timeoutSeconds: 5
  clientConfig:
    service: {namespace: sidecar, name: webhook, path: /mutate}
  namespaceSelector:
    matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-node-lease, sidecar]}
  objectSelector: {}
  matchConditions: []
  rules:
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods], scope: Namespaced}
`

var cleanValidating = strings.NewReplacer("Mutating", "Validating", "sidecar", "policy", "  reinvocationPolicy: Never\n", "").Replace(cleanMutating)

// mutating and validating return a clean configuration with fields replaced: "field: value" replaces
// the line of that field, and "-field" removes it.
func mutating(changes ...string) string   { return changed(cleanMutating, changes) }
func validating(changes ...string) string { return changed(cleanValidating, changes) }

func changed(text string, changes []string) string {
	for _, change := range changes {
		field, _, _ := strings.Cut(strings.TrimPrefix(change, "-"), ":")
		// The value of a field continues on the lines that are indented more.
		line := regexp.MustCompile(`(?m)^( *)(- )?` + regexp.QuoteMeta(field) + `:.*\n`)
		at := line.FindStringSubmatchIndex(text)
		if at == nil {
			panic("no field " + field)
		}
		end := at[1]
		indent := text[at[2]:at[3]]
		for strings.HasPrefix(text[end:], indent+" ") || (strings.HasPrefix(text[end:], indent+"- ") && at[4] < 0) {
			end += strings.Index(text[end:], "\n") + 1
		}
		if strings.HasPrefix(change, "-") {
			text = text[:at[0]] + text[end:]
			continue
		}
		begin := indent
		if at[4] >= 0 {
			begin += "- "
			end = at[1]
		}
		text = text[:at[0]] + begin + change + "\n" + text[end:]
	}
	return text
}

func join(texts ...string) string { return strings.Join(texts, "\n---\n") }

func rule(text string) string { return "rules: [{" + text + "}]" }

const anywhere = "namespaceSelector: {}"

func TestCleanConfigurationsBreakNoRule(t *testing.T) {
	for _, text := range []string{cleanMutating, cleanValidating} {
		for _, f := range Run(Input{Objects: parse(t, text)}, Options{Now: clock}) {
			t.Errorf("%s %s %s: %s", f.Rule, f.Object, f.Path, f.Message)
		}
	}
}

func TestRules(t *testing.T) {
	rows := slices.Concat(rejectionRows(), lockoutRows(), surpriseRows(), timingRows(), certificateRows(t), suppressionRows())
	breaks, keeps := map[string]bool{}, map[string]bool{}
	for i, row := range rows {
		t.Run(fmt.Sprintf("%02d %s %s", i, row.rule, row.reason), func(t *testing.T) {
			options := row.options
			options.Now = clock
			input := Input{Objects: parse(t, row.text)}
			if row.serving != nil {
				input.Serving = map[string][]*x509.Certificate{"": row.serving}
			}
			findings := Run(input, options)
			at := slices.IndexFunc(findings, func(f Finding) bool { return f.Rule == row.rule && f.Suppressed == "" })
			switch {
			case row.breaks && at < 0:
				t.Errorf("not found; found: %+v", findings)
			case !row.breaks && at >= 0:
				t.Errorf("unexpected finding: %+v", findings[at])
			case row.breaks && row.path != "" && findings[at].Path != row.path:
				t.Errorf("found at %s, want %s", findings[at].Path, row.path)
			case row.breaks && row.severity != "" && findings[at].Severity != row.severity:
				t.Errorf("%+v, want %s", findings[at], row.severity)
			case row.breaks && !strings.Contains(findings[at].Message, row.message):
				t.Errorf("%+v, want %s", findings[at], row.message)
			case row.breaks && (findings[at].Message == "" || findings[at].Fix == "" || strings.HasSuffix(findings[at].Message, ".")):
				t.Errorf("%+v", findings[at])
			}
		})
		if row.breaks {
			breaks[row.rule] = true
		} else {
			keeps[row.rule] = true
		}
	}
	for _, r := range Rules() {
		if !breaks[r.ID] || !keeps[r.ID] {
			t.Errorf("%s (%s) has a positive row: %v, a negative row: %v", r.ID, r.Title, breaks[r.ID], keeps[r.ID])
		}
	}
}

func TestRulesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for _, r := range Rules() {
		if seen[r.ID] || r.ID <= last {
			t.Errorf("%s is there twice or not in order", r.ID)
		}
		seen[r.ID], last = true, r.ID
		if !regexp.MustCompile(`^AK[1-9][0-9]{2}$`).MatchString(r.ID) || !slices.Contains(Severities(), r.Severity) {
			t.Errorf("%+v", r)
		}
		if r.Title == "" || r.Why == "" || r.Fix == "" || !strings.HasPrefix(r.Link, "https://") {
			t.Errorf("%s lacks a title, why, fix or link: %+v", r.ID, r)
		}
	}
}

func rejectionRows() []row {
	return []row{
		{rule: "AK101", breaks: true, reason: "a number in quotes is text", text: mutating(`timeoutSeconds: "5"`), path: "webhooks[0].timeoutSeconds"},
		{rule: "AK101", breaks: true, reason: "one for a list", text: mutating("admissionReviewVersions: v1"), path: "webhooks[0].admissionReviewVersions"},
		{rule: "AK101", breaks: true, reason: "a list for one", text: mutating("failurePolicy: [Fail]"), path: "webhooks[0].failurePolicy"},
		{rule: "AK101", breaks: true, reason: "a number for a name", text: strings.Replace(cleanMutating, "  name: sidecar\n", "  name: 3\n", 1), path: "metadata"},
		{rule: "AK101", breaks: true, reason: "one for a list of them", text: notAList, path: "webhooks"},
		{rule: "AK101", reason: "YAML converts a number", text: mutating("timeoutSeconds: 05")},
		{rule: "AK102", breaks: true, reason: "a webhook's name has three parts", text: changedName("sidecar"), path: "webhooks[0].name"},
		{rule: "AK102", breaks: true, reason: "upper case", text: changedName("Sidecar.Example.com"), path: "webhooks[0].name"},
		{rule: "AK102", breaks: true, reason: "no name", text: strings.Replace(cleanMutating, "  name: sidecar\n", "  name: \"\"\n", 1), path: "metadata.name"},
		{rule: "AK102", reason: "the API server completes generateName", text: strings.Replace(cleanMutating, "  name: sidecar\n", "  generateName: sidecar-\n", 1)},
		{rule: "AK103", breaks: true, reason: "twice in one configuration", text: twice(cleanMutating, "sidecar.example.com"), path: "webhooks[1].name"},
		{rule: "AK103", reason: "in two configurations", text: join(cleanMutating, strings.Replace(cleanMutating, "name: sidecar\n", "name: other\n", 1))},
		{rule: "AK104", breaks: true, reason: "no operation", text: mutating(rule(`operations: [], apiGroups: [""], apiVersions: [v1], resources: [pods]`)), path: "webhooks[0].rules[0].operations"},
		{rule: "AK104", breaks: true, reason: "no such operation", text: mutating(rule(`operations: [PATCH], apiGroups: [""], apiVersions: [v1], resources: [pods]`))},
		{rule: "AK104", breaks: true, reason: "a wildcard that is not alone", text: mutating(rule(`operations: [CREATE], apiGroups: ["", "*"], apiVersions: [v1], resources: [pods]`))},
		{rule: "AK104", reason: "PATCH requests are UPDATE", text: mutating(rule(`operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [pods]`))},
		{rule: "AK105", breaks: true, reason: "the wildcard first", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods/*, pods/exec]`)), path: "webhooks[0].rules[0].resources[1]"},
		{rule: "AK105", breaks: true, reason: "* and another entry", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods, "*/*"]`))},
		{rule: "AK105", reason: "a resource and one subresource do not overlap", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods, pods/exec]`))},
		{rule: "AK106", breaks: true, reason: "the wildcard last", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods/exec, pods/*]`)), path: "webhooks[0].rules[0].resources"},
		{rule: "AK106", breaks: true, reason: "a plain name first", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods, "*"]`))},
		{rule: "AK106", reason: "rejected in this order: that is AK105", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ["*", pods]`))},
		{rule: "AK106", reason: "* and */* differ", text: mutating(rule(`operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: ["*", pods/status]`))},
		{rule: "AK107", breaks: true, reason: "http", text: mutating("clientConfig: {url: \"http://example.com/\"}"), path: "webhooks[0].clientConfig.url"},
		{rule: "AK107", breaks: true, reason: "both", text: mutating("clientConfig: {url: \"https://example.com/\", service: {namespace: a, name: b}}")},
		{rule: "AK107", breaks: true, reason: "an upper-case path", text: mutating("service: {namespace: sidecar, name: webhook, path: /mutatePods}"), path: "webhooks[0].clientConfig.service.path"},
		{rule: "AK107", reason: "a path may end in a slash", text: mutating("service: {namespace: sidecar, name: webhook, path: /mutate/}")},
		{rule: "AK108", breaks: true, reason: "v1 has no Some", text: mutating("sideEffects: Some"), path: "webhooks[0].sideEffects"},
		{rule: "AK108", breaks: true, reason: "sideEffects is required", text: mutating("-sideEffects")},
		{rule: "AK108", breaks: true, reason: "31 seconds", text: mutating("timeoutSeconds: 31")},
		{rule: "AK108", breaks: true, reason: "lower case", text: mutating("failurePolicy: fail")},
		{rule: "AK108", reason: "v1beta1 has a default for sideEffects", text: old(mutating("-sideEffects"))},
		{rule: "AK109", breaks: true, reason: "no known version", text: mutating("admissionReviewVersions: [v2]")},
		{rule: "AK109", breaks: true, reason: "v1 twice", text: mutating("admissionReviewVersions: [v1, v1]")},
		{rule: "AK109", reason: "unknown ones beside v1 are allowed", text: mutating("admissionReviewVersions: [v2, v1]")},
		{rule: "AK110", breaks: true, reason: "In without values", text: mutating("objectSelector: {matchExpressions: [{key: a, operator: In}]}")},
		{rule: "AK110", reason: "Exists takes no values", text: mutating("objectSelector: {matchExpressions: [{key: a, operator: Exists}]}")},
		{rule: "AK111", breaks: true, reason: "it does not compile", text: mutating("matchConditions: [{name: a, expression: \"objct.metadata.name == ''\"}]"), path: "webhooks[0].matchConditions[0].expression"},
		{rule: "AK111", breaks: true, reason: "it is not a bool", text: mutating("matchConditions: [{name: a, expression: \"'text'\"}]")},
		{rule: "AK111", reason: "it compiles", text: mutating("matchConditions: [{name: a, expression: \"object.metadata.name != ''\"}]")},
		{rule: "AK112", breaks: true, reason: "validating webhooks are not reinvoked", text: strings.Replace(cleanValidating, "  timeoutSeconds: 5\n", "  timeoutSeconds: 5\n  reinvocationPolicy: IfNeeded\n", 1), path: "webhooks[0].reinvocationPolicy"},
		{rule: "AK112", breaks: true, reason: "a misspelled name", text: strings.Replace(cleanMutating, "timeoutSeconds", "timeoutseconds", 1), path: "webhooks[0].timeoutseconds"},
		{rule: "AK112", reason: "mutating webhooks are", text: cleanMutating},
		{rule: "AK113", breaks: true, reason: "v1beta1", text: old(cleanMutating)},
		{rule: "AK113", breaks: true, reason: "v1beta1 at a new API server", text: old(cleanMutating), options: Options{Kubernetes: "1.36"}},
		{rule: "AK113", reason: "v1beta1 at an old API server", text: old(cleanMutating), options: Options{Kubernetes: "1.15"}},
		{rule: "AK113", reason: "v1", text: cleanMutating},
		{rule: "AK114", breaks: true, reason: "a service in a static manifest", text: strings.Replace(cleanMutating, "name: sidecar\n", "name: sidecar.static.k8s.io\n", 1)},
		{rule: "AK114", breaks: true, reason: "a static manifest in the cluster", text: strings.Replace(cleanMutating, "name: sidecar\n", "name: sidecar.static.k8s.io\n", 1), options: Options{Live: true}, path: "metadata.name"},
		{rule: "AK114", breaks: true, reason: "the name twice", text: join(staticManifest, staticManifest)},
		{rule: "AK114", reason: "a url", text: staticManifest},
		{rule: "AK115", breaks: true, reason: "one kind and name", text: join(cleanMutating, cleanMutating)},
		{rule: "AK115", reason: "a patch of the other", text: join(cleanMutating, mutating("-webhooks"))},
		{rule: "AK115", reason: "two kinds", text: join(cleanMutating, strings.Replace(cleanValidating, "name: policy\n", "name: sidecar\n", 1))},
		{rule: "AK113", breaks: true, reason: "v1 before 1.16", text: cleanMutating, options: Options{Kubernetes: "v1.15.12"}},
		{rule: "AK116", breaks: true, reason: "conditions before 1.28", text: mutating("matchConditions: [{name: a, expression: \"object.metadata.name != ''\"}]"), options: Options{Kubernetes: "1.27"}, path: "webhooks[0].matchConditions"},
		{rule: "AK116", breaks: true, reason: "namespaces by name before 1.21", text: mutating("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}"), options: Options{Kubernetes: "1.20"}, path: "webhooks[0].namespaceSelector"},
		{rule: "AK116", breaks: true, reason: "one namespace by name before 1.21", text: mutating("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}"), options: Options{Kubernetes: "1.20"}, path: "webhooks[0].namespaceSelector"},
		{rule: "AK116", reason: "namespaces by name in 1.21", text: mutating("namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}"), options: Options{Kubernetes: "1.21"}},
		{rule: "AK116", reason: "conditions in 1.28", text: mutating("matchConditions: [{name: a, expression: \"object.metadata.name != ''\"}]"), options: Options{Kubernetes: "1.28"}},
		{rule: "AK116", reason: "conditions, and an unknown version", text: mutating("matchConditions: [{name: a, expression: \"object.metadata.name != ''\"}]")},
	}
}

var notAList = regexp.MustCompile(`(?s)webhooks:.*`).ReplaceAllString(cleanMutating, "webhooks: {name: a.example.com}")

var staticManifest = strings.Replace(mutating(`clientConfig: {url: "https://localhost:9443/mutate"}`), "name: sidecar\n", "name: sidecar.static.k8s.io\n", 1)

func changedName(name string) string {
	return strings.Replace(cleanMutating, "sidecar.example.com", name, 1)
}

func old(text string) string {
	return strings.ReplaceAll(text, "admissionregistration.k8s.io/v1\n", "admissionregistration.k8s.io/v1beta1\n")
}

// twice appends a copy of the webhook with another name.
func twice(text, name string) string {
	at := strings.Index(text, "- name: ")
	webhook := regexp.MustCompile(`- name: .*`).ReplaceAllString(text[at:], "- name: "+name)
	return text + webhook
}

func suppressionRows() []row {
	long := "timeoutSeconds: 30"
	return []row{
		{rule: "AK901", breaks: true, reason: "no reason", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402"}`), path: "metadata.annotations[lint.admitkit.dev/ignore]"},
		{rule: "AK901", breaks: true, reason: "no reason in the options", text: mutating(long), options: Options{Ignore: []Ignore{{Rule: "AK402"}}}, path: "ignore[0]"},
		{rule: "AK901", reason: "a reason with special characters", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402=a=b, c"}`)},
		{rule: "AK402", reason: "suppressed", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402=asks a registry"}`)},
		{rule: "AK402", reason: "suppressed for the webhook", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402@*.example.com=asks a registry"}`)},
		{rule: "AK402", breaks: true, reason: "suppressed for another webhook", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402@other.example.com=asks a registry"}`)},
		{rule: "AK402", reason: "suppressed by the options", text: mutating(long), options: Options{Ignore: []Ignore{{Rule: "AK402", Object: "Mutating*/side*", Reason: "asks a registry"}}}},
		{rule: "AK402", breaks: true, reason: "suppressed without a reason", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402="}`)},
		{rule: "AK902", breaks: true, reason: "no such rule", text: mutating(`annotations: {lint.admitkit.dev/ignore: "XY999=why not"}`), message: `the rule "XY999" does not exist: ";" and`},
		{rule: "AK902", breaks: true, reason: "the number before it", text: mutating(`annotations: {lint.admitkit.dev/ignore: "ak408=why not"}`), message: `"ak408" does not exist; the closest ID is AK405, "the webhook does not see`},
		{rule: "AK902", breaks: true, reason: "a digit is missing", text: mutating(`annotations: {lint.admitkit.dev/ignore: "AK40=why not"}`), message: `the closest ID is AK401,`},
		{rule: "AK902", breaks: true, reason: "a letter for a digit", text: mutating(`annotations: {lint.admitkit.dev/ignore: "AK5O4=why not"}`), message: `the closest ID is AK501,`},
		{rule: "AK902", breaks: true, reason: "a reason with a semicolon", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402=it asks; so it waits"}`), message: `";" and line breaks separate entries`},
		{rule: "AK902", reason: "small letters", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "ak402=why not"}`)},
		{rule: "AK402", reason: "suppressed in small letters", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "ak402=why not"}`)},
		{rule: "AK402", reason: "suppressed in small letters by the options", text: mutating(long), options: Options{Ignore: []Ignore{{Rule: "ak402", Reason: "why not"}}}},
		{rule: "AK902", reason: "a rule", text: mutating(`annotations: {lint.admitkit.dev/ignore: "AK402=why not"}`)},
		{rule: "AK903", breaks: true, reason: "no finding matches", text: mutating(`annotations: {lint.admitkit.dev/ignore: "AK402=asks a registry"}`)},
		{rule: "AK903", breaks: true, reason: "found in another configuration", text: join(mutating(`annotations: {lint.admitkit.dev/ignore: "AK402=asks a registry"}`), validating(long))},
		{rule: "AK903", breaks: true, reason: "no finding matches the options", text: cleanMutating, options: Options{Ignore: []Ignore{{Rule: "AK402", Object: "*/sidecar", Reason: "asks a registry"}}}, path: "ignore[0]"},
		{rule: "AK903", breaks: true, reason: "a webhook matches, but no finding", text: cleanMutating, options: Options{Ignore: []Ignore{{Rule: "AK402", Object: "*/sidecar", Webhook: "*", Reason: "asks a registry"}}}, path: "ignore[0]"},
		{rule: "AK903", reason: "no webhook matches", text: cleanMutating, options: Options{Ignore: []Ignore{{Rule: "AK402", Object: "*/sidecar", Webhook: "gone-*", Reason: "asks a registry"}}}},
		{rule: "AK903", reason: "the configuration is not in the input", text: cleanMutating, options: Options{Ignore: []Ignore{{Rule: "AK402", Object: "*/other", Reason: "asks a registry"}}}},
		{rule: "AK903", reason: "a finding matches", text: mutating(long, `annotations: {lint.admitkit.dev/ignore: "AK402=asks a registry"}`)},
	}
}

func encoded(text ...[]byte) string {
	return "clientConfig: {service: {namespace: sidecar, name: webhook}, caBundle: " + base64.StdEncoding.EncodeToString(slices.Concat(text...)) + "}"
}

func certificateRows(t *testing.T) []row {
	far, soon, past := now.AddDate(1, 0, 0), now.AddDate(0, 0, 10), now.AddDate(0, 0, -1)
	ca, other, ending, ended := issue(t, nil, true, far), issue(t, nil, true, far), issue(t, nil, true, soon), issue(t, nil, true, past)
	future := issueFrom(t, nil, true, now.AddDate(0, 0, 1), far)
	headers := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"name": "ours"}, Bytes: ca.certificate.Raw})
	damaged := []byte("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n")
	leaf := issue(t, ca, false, far, "webhook.sidecar.svc")
	wrong := issue(t, ca, false, far, "webhook.sidecar.svc.cluster.local")
	live := Options{Live: true}
	chain := func(a *authority) []*x509.Certificate { return []*x509.Certificate{a.certificate} }
	const empty = "clientConfig: {service: {namespace: sidecar, name: webhook}, caBundle: Cg==}"
	return []row{
		{rule: "AK501", breaks: true, reason: "a placeholder", text: mutating("clientConfig: {service: {namespace: sidecar, name: webhook}, caBundle: \"${CA_BUNDLE}\"}"), path: "webhooks[0].clientConfig.caBundle"},
		{rule: "AK501", breaks: true, reason: "PEM without base64", text: mutating("clientConfig: {service: {namespace: sidecar, name: webhook}, caBundle: \"-----BEGIN CERTIFICATE-----\"}")},
		{rule: "AK501", reason: "a line break in base64", text: mutating(empty)},
		{rule: "AK502", breaks: true, reason: "text", text: mutating(encoded([]byte("ca")))},
		{rule: "AK502", breaks: true, reason: "DER", text: mutating(encoded(ca.certificate.Raw))},
		{rule: "AK502", breaks: true, reason: "damaged", text: mutating(encoded(damaged))},
		{rule: "AK502", breaks: true, reason: "PEM headers", text: mutating(encoded(headers)), severity: Error},
		{rule: "AK502", breaks: true, reason: "the rest is used", text: mutating(encoded(headers, ca.pem())), severity: Warning},
		{rule: "AK502", breaks: true, reason: "a damaged bundle does not hide other findings", text: mutating(encoded(damaged, ca.pem())), severity: Warning},
		{rule: "AK502", breaks: true, reason: "a key only", text: mutating(encoded(ca.keyPEM(t))), severity: Error},
		{rule: "AK502", reason: "blocks of other types are skipped", text: mutating(encoded(ca.keyPEM(t), ca.pem()))},
		{rule: "AK502", reason: "text around it", text: mutating(encoded([]byte("# our CA\n"), ca.pem()))},
		{rule: "AK502", reason: "white space counts as empty", text: mutating(empty)},
		{rule: "AK503", breaks: true, reason: "expired", text: mutating(encoded(ended.pem()))},
		{rule: "AK503", reason: "beside one that has not expired", text: mutating(encoded(ended.pem(), ca.pem()))},
		{rule: "AK503", breaks: true, reason: "not valid yet", text: mutating(encoded(future.pem()))},
		{rule: "AK503", breaks: true, reason: "one has expired and one is not valid yet", text: mutating(encoded(ended.pem(), future.pem()))},
		{rule: "AK503", reason: "the bundle has its successor already", text: mutating(encoded(future.pem(), ca.pem()))},
		{rule: "AK504", breaks: true, reason: "in ten days", text: mutating(encoded(ending.pem()))},
		{rule: "AK504", reason: "the bundle has its successor", text: mutating(encoded(ending.pem(), ca.pem()))},
		{rule: "AK504", reason: "within a longer ExpiresWithin", text: mutating(encoded(ending.pem())), options: Options{ExpiresWithin: 1}},
		{rule: "AK505", breaks: true, reason: "the serving certificate itself", text: mutating(encoded(leaf.pem()))},
		{rule: "AK505", reason: "a CA", text: mutating(encoded(ca.pem()))},
		{rule: "AK506", breaks: true, reason: "missing in a cluster", text: mutating(empty), options: live},
		{rule: "AK506", reason: "in a file, a program may set it", text: mutating(empty)},
		{rule: "AK506", reason: "the API server reports it too", text: mutating("clientConfig: {service: {namespace: default, name: kubernetes}}"), options: live},
		{rule: "AK506", reason: "a url may have a public certificate", text: mutating("clientConfig: {url: \"https://hooks.example.com/\"}"), options: live},
		{rule: "AK507", breaks: true, reason: "a key", text: mutating(encoded(ca.pem(), ca.keyPEM(t)))},
		{rule: "AK507", reason: "no key", text: mutating(encoded(ca.pem()))},
		{rule: "AK508", breaks: true, reason: "the API server never uses the cluster domain", text: mutating(encoded(ca.pem())), serving: chain(wrong)},
		{rule: "AK508", reason: "the name of the service", text: mutating(encoded(ca.pem())), serving: chain(leaf)},
		{rule: "AK509", breaks: true, reason: "another CA", text: mutating(encoded(other.pem())), serving: chain(leaf)},
		{rule: "AK509", reason: "two CAs during a rotation", text: mutating(encoded(other.pem(), ca.pem())), serving: chain(leaf)},
		{rule: "AK509", reason: "the bundle is filled in later", text: mutating(empty), serving: chain(leaf)},
	}
}
