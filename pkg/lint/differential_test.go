// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
)

// rejectionRules lists the rules about configurations that the API server rejects.
var rejectionRules = []string{"AK101", "AK102", "AK103", "AK104", "AK105", "AK107", "AK108", "AK109", "AK110", "AK111", "AK501"}

// TestRejectionsMatchAPIServer sends generated configurations to a real API server as dry runs. The findings must name
// exactly the fields that the API server rejects. There must be a finding of AK112 if the API server accepts the
// configuration with a warning, and only then.
func TestRejectionsMatchAPIServer(t *testing.T) {
	server := apiservertest.Start(t, nil)
	refused, warned := 0, 0
	const cases = 600
	for seed := range uint64(cases) {
		u := generate(rand.New(rand.NewPCG(seed, 6)))
		var fields []string
		warning := ""
		for _, f := range Run(Input{Objects: []runtime.Object{u}}, Options{Now: clock}) {
			if slices.Contains(rejectionRules, f.Rule) {
				fields = append(fields, f.Path)
			}
			if f.Rule == "AK112" {
				warning = f.Path
			}
		}
		answer := tryToCreate(t, server.Config, u)
		if (answer.err == nil) != (len(fields) == 0) {
			t.Errorf("seed %d: the API server says %v, findings at %q\n%v", seed, answer.err, fields, u.Object)
			continue
		}
		if !same(answer.fields, fields) {
			t.Errorf("seed %d: the API server names %q, findings at %q: %v", seed, answer.fields, fields, answer.err)
		}
		if answer.err == nil && (len(answer.warnings) > 0) != (warning != "") {
			t.Errorf("seed %d: the API server warns %q, finding at %q", seed, answer.warnings, warning)
		}
		if answer.err != nil {
			refused++
		}
		if len(answer.warnings) > 0 {
			warned++
		}
	}
	if refused < cases/4 || refused > cases*3/4 || warned < cases/50 {
		t.Errorf("of %d configurations, %d were rejected and %d caused warnings: too few or too many for this test", cases, refused, warned)
	}
}

type answer struct {
	err      error
	fields   []string
	warnings []string
}

// HandleWarningHeader collects the warnings of the API server.
func (a *answer) HandleWarningHeader(_ int, _ string, text string) {
	a.warnings = append(a.warnings, text)
}

func tryToCreate(t *testing.T, config *rest.Config, u *unstructured.Unstructured) *answer {
	t.Helper()
	a := &answer{}
	config = rest.CopyConfig(config)
	config.WarningHandler, config.QPS = a, -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: strings.ToLower(u.GetKind()) + "s"}
	_, a.err = client.Resource(r).Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Warn"})
	if a.err == nil {
		return a
	}
	var status apierrors.APIStatus
	if !errors.As(a.err, &status) || (status.Status().Code != 422 && status.Status().Code != 400) {
		t.Fatalf("unexpected error: %v", a.err)
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			a.fields = append(a.fields, cause.Field)
		}
	}
	return a
}

// mixedUp swaps two field names. validateMutatingWebhook and validateValidatingWebhook pass a Service's name and namespace
// to ValidateWebhookService in the wrong order, so the API server reports the other field.
var mixedUp = strings.NewReplacer("service.namespace", "service.name", "service.name", "service.namespace")

// same reports whether an answer of the API server and the findings name the same fields. If the answer names no
// fields, same returns true.
func same(answered, found []string) bool {
	if answered == nil { // 400: the API server could not decode the configuration
		return true
	}
	for i, name := range answered {
		answered[i] = mixedUp.Replace(name)
	}
	slices.Sort(answered)
	slices.Sort(found)
	return slices.Equal(slices.Compact(slices.Clone(answered)), slices.Compact(slices.Clone(found)))
}

// generate returns a random configuration that is valid or nearly valid.
func generate(r *rand.Rand) *unstructured.Unstructured {
	kind := pick(r, mutatingKind, validatingKind)
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": rare(r, "generated", "Upper", "with_underscore", "generated.static.example.com")},
	}}
	var webhooks []any
	for range r.IntN(3) {
		webhooks = append(webhooks, generateWebhook(r, kind == mutatingKind))
	}
	if webhooks != nil {
		u.Object["webhooks"] = webhooks
	}
	return u
}

func generateWebhook(r *rand.Rand, isMutating bool) map[string]any {
	w := map[string]any{
		"name":                    fmt.Sprintf("%s.example.com", rare(r, pick(r, "a", "b", "c", "d"), "Bad", "", "x y")),
		"clientConfig":            generateClient(r),
		"sideEffects":             rare(r, "None", "NoneOnDryRun", "Some", "Unknown", "none"),
		"admissionReviewVersions": rare[any](r, []any{"v1"}, []any{"v2", "v1"}, []any{}, []any{"v2"}, []any{"v1", "v1"}, []any{"V1", "v1"}),
	}
	var rules []any
	for range r.IntN(3) {
		rules = append(rules, generateRule(r))
	}
	if rules != nil {
		w["rules"] = rules
	}
	some := func(name string, value any) {
		if r.IntN(4) == 0 {
			w[name] = value
		}
	}
	some("failurePolicy", rare(r, pick(r, "Fail", "Ignore"), "Open"))
	some("matchPolicy", rare(r, pick(r, "Exact", "Equivalent"), "Some"))
	some("timeoutSeconds", rare[any](r, int64(1+r.IntN(30)), int64(0), int64(31), "5"))
	some("namespaceSelector", generateSelector(r))
	some("objectSelector", generateSelector(r))
	some("matchConditions", generateConditions(r))
	if isMutating {
		some("reinvocationPolicy", rare(r, pick(r, "Never", "IfNeeded"), "Always"))
	} else if r.IntN(20) == 0 {
		w["reinvocationPolicy"] = "Never"
	}
	if r.IntN(30) == 0 {
		delete(w, pick(r, "sideEffects", "name", "clientConfig", "admissionReviewVersions"))
	}
	return w
}

func generateClient(r *rand.Rand) map[string]any {
	c := map[string]any{}
	if r.IntN(3) > 0 {
		service := map[string]any{"namespace": rare(r, "ns", ""), "name": rare(r, "svc", "")}
		if r.IntN(2) == 0 {
			service["path"] = rare(r, pick(r, "/", "/a", "/a/b/", ""), "a", "/A", "/a//b", "//", "/a_b", "/a%20b")
		}
		if r.IntN(3) == 0 {
			service["port"] = rare(r, int64(443), int64(0), int64(65535), int64(65536))
		}
		c["service"] = service
	} else {
		c["url"] = rare(r, pick(r, "https://example.com", "https://example.com:9443/a"), "http://example.com", "https:///a", "https://u@example.com", "https://example.com?a=b", "https://example.com/#a", ":", "")
	}
	if r.IntN(40) == 0 {
		c["url"] = "https://example.com"
	}
	if r.IntN(6) == 0 {
		c["caBundle"] = rare(r, "Cg==", "${CA}", "YWJj", "YWJ")
	}
	return c
}

func generateRule(r *rand.Rand) map[string]any {
	all := []string{"pods", "pods/exec", "pods/*", "*/exec", "*", "*/*", "widgets", "widgets/status", "*/status"}
	var resources []any
	for range 1 + r.IntN(2) {
		resources = append(resources, rare(r, pick(r, all...), ""))
	}
	rule := map[string]any{
		"operations":  rare[any](r, []any{"CREATE"}, []any{"*"}, []any{"CREATE", "UPDATE"}, []any{"*", "CREATE"}, []any{"PATCH"}, []any{}),
		"apiGroups":   rare[any](r, []any{""}, []any{"*"}, []any{"", "apps"}, []any{"*", "apps"}, []any{}),
		"apiVersions": rare[any](r, []any{"v1"}, []any{"*"}, []any{"v1", ""}, []any{"*", "v1"}, []any{}),
		"resources":   resources,
	}
	if r.IntN(4) == 0 {
		rule["scope"] = rare(r, pick(r, "*", "Cluster", "Namespaced"), "Global")
	}
	if r.IntN(40) == 0 {
		rule["resource"] = "pods"
	}
	return rule
}

func generateSelector(r *rand.Rand) map[string]any {
	return rare(r, map[string]any{}, map[string]any{"matchLabels": map[string]any{"a": "b"}},
		map[string]any{"matchLabels": map[string]any{"a/b/c": "b"}}, map[string]any{"matchLabels": map[string]any{"a": "b c"}},
		map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "In"}}},
		map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Is", "values": []any{"b"}}}},
		map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists", "values": []any{"b"}}}})
}

func generateConditions(r *rand.Rand) []any {
	var all []any
	for range 1 + r.IntN(2) {
		all = append(all, map[string]any{
			"name": rare(r, pick(r, "a", "b", "example.com/c"), "", "a b"),
			"expression": rare(r, pick(r, "true", "object.metadata.name == 'a'", "request.operation == 'CREATE'"),
				"", "objct == 1", "'text'", "1 +", "params.a", "authorizer.group('').resource('pods').check('get').allowed()"),
		})
	}
	return all
}

// rare returns the usual value, and sometimes one of the others.
func rare[T any](r *rand.Rand, usual T, others ...T) T {
	if r.IntN(14) > 0 {
		return usual
	}
	return others[r.IntN(len(others))]
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }
