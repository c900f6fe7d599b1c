// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// validatingPolicy returns a policy for new Pods with a binding. The arguments are fields in YAML's flow style.
func validatingPolicy(name, spec, binding string) string {
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}, %[2]s}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny], %[3]s}
`, name, spec, binding)
}

// mutatingPolicy returns a policy for new Pods that adds a label, with a binding.
func mutatingPolicy(name, label, value string) string {
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'%[2]s': %[3]s}}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`, name, label, value)
}

const limits = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: shop}, data: {most: \"1\"}}\n"

// TestPoliciesAreEvaluated checks what is said about policies in files, and about the webhooks after them.
func TestPoliciesAreEvaluated(t *testing.T) {
	const (
		never  = `validations: [{expression: "false", message: never}]`
		byTeam = ", objectSelector: {matchLabels: {team: blue}}"
	)
	param := `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "size(object.spec.containers) < int(params.data.most)", message: too many}]`
	for _, row := range []struct {
		name, policies, fields string
		want                   []string
	}{
		{"a denial", validatingPolicy("p", never, ""), "", []string{"p: yes by Matches: it denies the request: never", `rejected by "ValidatingAdmissionPolicy p" before validating webhooks with 422`, "v.example.com: no by Rejection"}},
		{"a parameter", validatingPolicy("p", param, "paramRef: {name: limits, parameterNotFoundAction: Deny}") + limits, "", []string{"p: yes by Matches: with shop/limits: unless a webhook changes the object, it denies the request: too many"}},
		{"a missing parameter", validatingPolicy("p", param, "paramRef: {name: limits, parameterNotFoundAction: Deny}"), "", []string{"p: unknown by Matches: its parameter ConfigMap shop/limits is not in these files", "v.example.com: yes"}},
		{"a missing parameter that may be missing", validatingPolicy("p", param, "paramRef: {name: limits, parameterNotFoundAction: Allow}"), "", []string{"p: unknown by Param", "v.example.com: yes"}},
		{"an unknown namespace", validatingPolicy("p", never, "matchResources: {namespaceSelector: {matchLabels: {a: b}}}"), "", []string{"p: unknown by NamespaceSelector: the labels of namespace \"shop\" are unknown", "v.example.com: yes"}},
		{"labels of the namespace", validatingPolicy("p", `validations: [{expression: "has(namespaceObject.metadata.annotations)"}]`, ""), "", []string{"p: unknown by Matches: the labels of namespace", "v.example.com: yes"}},
		{"permissions", validatingPolicy("p", `validations: [{expression: "authorizer.group('').resource('pods').check('get').allowed()"}]`, ""), "", []string{"p: unknown by Matches: it checks permissions that are unknown", "v.example.com: yes"}},
		{"a field that a plugin sets", validatingPolicy("p", `validations: [{expression: "!has(object.spec.tolerations)"}]`, ""), "", []string{"p: unknown by Matches: it is true for the object as it is written, but the plugin"}},
		{"a parameter in another namespace", validatingPolicy("p", param, "paramRef: {name: limits, namespace: other, parameterNotFoundAction: Deny}") + limits, "", []string{"p: unknown by Matches: its parameter ConfigMap other/limits is not in these files"}},
		{"a parameter without a namespace", validatingPolicy("p", param, "paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}") + strings.Replace(limits, ", namespace: shop", "", 1), "", []string{"p: yes by Matches: with default/limits"}},
		{"selected parameters", validatingPolicy("p", param, "paramRef: {selector: {matchLabels: {a: b}}, parameterNotFoundAction: Allow}"), "", []string{"p: unknown by Param: its parameters of kind ConfigMap are selected by their labels"}},
		{"a parameter of an unknown kind", validatingPolicy("p", `paramKind: {apiVersion: example.com/v1, kind: Limit}, validations: [{expression: "false"}]`, "paramRef: {name: limits, parameterNotFoundAction: Deny}"), "", []string{"p: unknown by Matches: the CustomResourceDefinition of Limit is not in these files", "v.example.com: yes"}},
		{"annotations of the namespace", "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {a: b}}}\n" + validatingPolicy("p", `validations: [{expression: "has(namespaceObject.metadata.annotations)"}]`, ""), "", []string{"p: unknown by Matches: it reads fields of the Namespace that explain does not know"}},
		{"a namespace by its name", validatingPolicy("p", never, "matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}"), "", []string{"p: no by NamespaceSelector"}},
		{"an audit annotation", validatingPolicy("p", never+", auditAnnotations: [{key: a, valueExpression: \"string(namespaceObject.metadata.labels['team'])\"}]", ""), "", []string{"p: unknown by Matches: the labels of namespace"}},
		{"no binding", strings.Replace(validatingPolicy("p", never, ""), "policyName: p", "policyName: q", 1), "", []string{"p: unknown by Binding: it has no binding in these files", "v.example.com: yes"}},
		{"an older and a certain denial", validatingPolicy("a", `validations: [{expression: "authorizer.group('').resource('pods').check('get').allowed()"}]`, "") + validatingPolicy("b", never, ""), "", []string{"a: unknown by Matches", "b: yes by Matches: it denies the request: never", `rejected by "ValidatingAdmissionPolicy b" before validating webhooks`}},
		{"after an unknown mutation", mutatingPolicy("m", "team", "namespaceObject.metadata.labels['team']") + validatingPolicy("p", never, "matchResources: {objectSelector: {matchLabels: {app: web}}}"), "", []string{"p: unknown by Rejection: MutatingAdmissionPolicy m, whose effect is unknown, may change the object before", "v.example.com: yes"}},
		{"a mutation selects the webhook", mutatingPolicy("m", "team", "'blue'"), byTeam, []string{"m: yes by Matches: it changes the object", "m.example.com: yes"}},
		{"a mutation does not select it", mutatingPolicy("m", "team", "'red'"), byTeam, []string{"m: yes by Matches: it changes the object", "m.example.com: no by ObjectSelector"}},
		{"an unknown mutation", mutatingPolicy("m", "team", "namespaceObject.metadata.labels['team']"), byTeam, []string{"m: unknown by Matches: the labels of namespace", "m.example.com: unknown by ObjectSelector: depends on MutatingAdmissionPolicy m, which may change the object"}},
		{"a mutation that fails", mutatingPolicy("m", "team", "object.metadata.annotations['team']"), "", []string{"m: yes by Matches: it fails, so the request is rejected", `rejected by "MutatingAdmissionPolicy m" before mutating webhooks with 403`, "m.example.com: no by Rejection"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := explainOne(t, configuration("Mutating", "m", "m.example.com", row.fields)+"---"+configuration("Validating", "v", "v.example.com", "")+row.policies, aPod, Ask{User: &User{Name: "jane"}})
			got := policiesOf(o) + summary(o)
			for _, want := range row.want {
				if !strings.Contains(got, want) {
					t.Errorf("got\n%s\nwant %s", got, want)
				}
			}
		})
	}
}

// policiesOf describes the policies of an explanation, one in a line.
func policiesOf(o Object) string {
	var lines strings.Builder
	for i := range o.Policies {
		p := &o.Policies[i]
		fmt.Fprintf(&lines, "%s: %s by %s: %s\n", p.Name, p.Applies, p.Decision, strings.Join(p.sentences(), "; "))
	}
	return lines.String()
}

// TestEquivalentPolicies checks that a rule for another version of a built-in kind makes a result unknown.
func TestEquivalentPolicies(t *testing.T) {
	policy := strings.ReplaceAll(validatingPolicy("p", `validations: [{expression: "false", message: never}]`, ""), `apiGroups: [""], apiVersions: [v1], resources: [pods]`, "apiGroups: [autoscaling], apiVersions: [v1], resources: [horizontalpodautoscalers]")
	hpa := `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: shop}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`
	if got := policiesOf(explainOne(t, policy, hpa, Ask{})); !strings.Contains(got, "p: unknown by Rules: it has a rule for horizontalpodautoscalers.autoscaling, but not for version v2") {
		t.Error(got)
	}
	exact := strings.Replace(policy, "matchConstraints: {", "matchConstraints: {matchPolicy: Exact, ", 1)
	if got := policiesOf(explainOne(t, exact, hpa, Ask{})); !strings.Contains(got, "p: no by Rules") {
		t.Error(got)
	}
}

// TestPoliciesOfOlderVersions checks that mutating policies in files are not evaluated for a version without them.
func TestPoliciesOfOlderVersions(t *testing.T) {
	w, err := FromFiles(read(t, mutatingPolicy("m", "team", "'blue'")+validatingPolicy("p", `validations: [{expression: "true"}]`, "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Kubernetes = "1.30"
	report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
	if err != nil {
		t.Fatal(err)
	}
	if got := policiesOf(report.Objects[0]); strings.Contains(got, "m: ") || !strings.Contains(got, "p: yes") || !strings.Contains(summary(report.Objects[0]), "Kubernetes 1.30 has no MutatingAdmissionPolicy") {
		t.Errorf("%s%s", got, summary(report.Objects[0]))
	}
}

func TestPolicyThatIsRejected(t *testing.T) {
	_, err := FromFiles(read(t, configuration("Mutating", "m", "m.example.com", "")+validatingPolicy("p", `validations: [{expression: "objekt"}]`, "")), nil)
	if err == nil || !strings.Contains(err.Error(), "standard input:8: the API server would reject it: ValidatingAdmissionPolicy p: spec.validations[0].expression: ") {
		t.Errorf("got %v", err)
	}
}

// TestPoliciesOfCluster compares the explanation with what an API server does, for policies in the cluster.
func TestPoliciesOfCluster(t *testing.T) {
	r := newRig(t)
	r.must(t, http.MethodPost, "/api/v1/namespaces", json.RawMessage(`{"metadata":{"name":"shop","labels":{"team":"blue"}}}`))
	const api = "/apis/admissionregistration.k8s.io/v1/"
	paths := map[string]string{"ConfigMap": "/api/v1/namespaces/shop/configmaps", "ValidatingAdmissionPolicy": api + "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": api + "validatingadmissionpolicybindings", "MutatingAdmissionPolicy": api + "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": api + "mutatingadmissionpolicybindings"}
	param := `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "size(object.spec.containers) <= int(params.data.most)", message: too many containers}]`
	all, plain := limits, `"team":"blue"` // the labels of a Pod that is allowed
	if apiservertest.HasMutatingPolicies(t, r.config) {
		all, plain = all+mutatingPolicy("team", "team", "namespaceObject.metadata.labels['team']"), ""
	}
	for _, o := range read(t, all+
		validatingPolicy("few", param, "paramRef: {name: limits, parameterNotFoundAction: Deny}")+
		validatingPolicy("blue", `validations: [{expression: "object.metadata.labels['team'] == 'blue' && !('no' in object.metadata.labels)", message: not blue}]`, "")) {
		r.must(t, http.MethodPost, paths[o.GVK.Kind], json.RawMessage(o.JSON))
	}
	pod := func(labels, containers string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","labels":{%s}},"spec":{"containers":[%s]}}`, labels, containers)
	}
	one, two := `{"name":"a","image":"a"}`, `{"name":"a","image":"a"},{"name":"b","image":"b"}`
	create := func(ctx context.Context, object string) (int, string) {
		code, answer, err := r.do(ctx, http.MethodPost, "/api/v1/namespaces/shop/pods?dryRun=All", json.RawMessage(object), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		var status struct{ Message string }
		if err := json.Unmarshal(answer, &status); err != nil {
			t.Fatal(err)
		}
		return code, status.Message
	}
	for _, denied := range []string{pod(`"no":""`, one), pod(plain, two)} { // both policies are known once they deny
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			code, _ := create(ctx, denied)
			return code == http.StatusUnprocessableEntity, nil
		}); err != nil {
			t.Fatal("the policies do not deny", err)
		}
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		code, _ := create(ctx, pod(plain, one))
		return code == http.StatusCreated, nil // the mutating policy adds the label
	}); err != nil {
		t.Fatal("the mutating policy does not change a Pod", err)
	}
	facts, err := from(t.Context(), r.config, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{pod(plain, one), pod(plain, two), pod(`"team":"blue","no":""`, one), pod(`"team":"red"`, one)} {
		report, err := facts.Explain(t.Context(), read(t, object), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		code, message := create(t.Context(), object)
		o := report.Objects[0]
		if rejection := o.Rejection; (rejection == nil) != (code == http.StatusCreated) || rejection != nil && (int(rejection.Code) != code || rejection.Message != message) {
			t.Errorf("%s: the API server answered %d %s, the explanation is\n%s%s", object, code, message, policiesOf(o), summary(o))
		}
		if !report.PoliciesKnown || strings.Contains(policiesOf(o), string(Unknown)) {
			t.Errorf("%s: known %t:\n%s", object, report.PoliciesKnown, policiesOf(o))
		}
	}
}

// TestPoliciesAsText checks where policies are in the text.
func TestPoliciesAsText(t *testing.T) {
	w, err := FromFiles(read(t, configuration("Mutating", "m", "m.example.com", "")+"---"+configuration("Validating", "v", "v.example.com", "")+
		mutatingPolicy("team", "team", "'blue'")+validatingPolicy("named", `validations: [{expression: "object.metadata.name != 'other'"}]`, "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := w.Explain(t.Context(), read(t, aPod), Ask{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Text(&text, screen.Painter{}, ""); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{
		"mutating admission policies, in no fixed order:\n      evaluated  team with the binding team\n                 it changes the object\n",
		"mutating webhooks, one after the other:", "m.example.com",
		"validating admission policies, in no fixed order:\n      evaluated  named with the binding named\n                 it allows the request\n",
		"validating webhooks, all at the same time:", "v.example.com",
	} {
		next := strings.Index(text.String(), want)
		if next <= at {
			t.Fatalf("%q is not after the others:\n%s", want, text.String())
		}
		at = next
	}
}
