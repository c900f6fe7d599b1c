// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/chain"
)

func createFrom(object string) chain.Request {
	return chain.Request{Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: []byte(object)}
}

const plainPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"spec":{"containers":[]}}`

// mutatingPolicy adds a mutating policy for Pods with a binding. spec is YAML.
func mutatingPolicy(t testing.TB, p *chain.Policies, name, spec string) {
	t.Helper()
	m := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.MatchConstraints = podConstraints()
	if err := yaml.UnmarshalStrict([]byte(spec), &m.Spec); err != nil {
		t.Fatal(err)
	}
	p.Mutating = append(p.Mutating, m)
	p.MutatingBindings = append(p.MutatingBindings, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	})
}

// validatingPolicy adds a validating policy for Pods. spec and binding are YAML.
func validatingPolicy(t testing.TB, p *chain.Policies, name, spec, binding string) {
	t.Helper()
	v := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.MatchConstraints = podConstraints()
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for text, into := range map[string]any{spec: &v.Spec, binding: &b.Spec} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	b.Spec.PolicyName = name
	p.Validating, p.ValidatingBindings = append(p.Validating, v), append(p.ValidatingBindings, b)
}

func podConstraints() *admissionregistrationv1.MatchResources {
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: podRule(admissionregistrationv1.Create)}
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}}
}

// jsonPatch returns the spec of a mutating policy with one JSONPatch.
func jsonPatch(reinvocation, patch string) string {
	return fmt.Sprintf("reinvocationPolicy: %s\nmutations: [{patchType: JSONPatch, jsonPatch: {expression: %q}}]", reinvocation, patch)
}

// evaluated describes evaluations: "round 0: team Allowed, mutated".
func evaluated(all []chain.Evaluation) string {
	var lines []string
	for _, e := range all {
		line := fmt.Sprintf("round %d: %s %s", e.Round, e.Policy, e.Effect)
		if e.Param != "" {
			line += " with " + e.Param
		}
		if e.Mutated {
			line += ", mutated"
		}
		for _, f := range e.Failures {
			line += ": " + f
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestPoliciesAndWebhooks checks the order of policies and webhooks, and their reinvocation.
func TestPoliciesAndWebhooks(t *testing.T) {
	var p chain.Policies
	mutatingPolicy(t, &p, "team", jsonPatch("Never", "[JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'blue'}]"))
	mutatingPolicy(t, &p, "zone", jsonPatch("IfNeeded", "[JSONPatch{op: 'add', path: '/metadata/labels/zone', value: 'a'}]"))
	validatingPolicy(t, &p, "size", `validations: [{expression: "!('size' in object.metadata.labels)", message: no sizes}]`, "validationActions: [Deny]")
	of := func(label string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}}}
	}
	for _, row := range []struct{ name, patch, calls, evaluations, denied string }{
		{"the webhook changes nothing", "", "round 0 hook\nround 0 check", "round 0: team Allowed, mutated\nround 0: zone Allowed, mutated\nround 1: zone Allowed\nround 0: size Allowed", ""},
		{"the webhook changes the object", `[{"op":"add","path":"/metadata/labels/more","value":"1"}]`, "round 0 hook\nround 0 check", "round 0: team Allowed, mutated\nround 0: zone Allowed, mutated\nround 1: zone Allowed\nround 0: size Allowed", ""},
		{"the webhook undoes the policy", `[{"op":"remove","path":"/metadata/labels/zone"}]`, "round 0 hook\nround 1 hook\nround 0 check", "round 0: team Allowed, mutated\nround 0: zone Allowed, mutated\nround 1: zone Allowed, mutated\nround 0: size Allowed", ""},
		{"the webhook breaks the other policy", `[{"op":"add","path":"/metadata/labels/size","value":"1"}]`, "round 0 hook", "round 0: team Allowed, mutated\nround 0: zone Allowed, mutated\nround 1: zone Allowed\nround 0: size Denied: no sizes", "ValidatingAdmissionPolicy 'size' with binding 'size' denied request: no sizes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newChain(t, chain.Webhooks{
				Mutating: mutating(mutatingHook("hook.example.com", func(h *admissionregistrationv1.MutatingWebhook) {
					h.ObjectSelector, h.ReinvocationPolicy = of("team"), ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
				})),
				Validating: validating(validatingHook("check.example.com")),
				Handlers: map[string]http.Handler{"hook.example.com": patching(func(req *admissionv1.AdmissionRequest) string {
					if strings.Contains(row.patch, "remove") && !strings.Contains(string(req.Object.Raw), `"zone"`) {
						return ""
					}
					return row.patch
				}), "check.example.com": allowing()},
			}, chain.Options{Policies: p})
			got := admit(t, c, createFrom(plainPod))
			var calls []string
			for _, call := range got.Calls {
				calls = append(calls, fmt.Sprintf("round %d %s", call.Round, strings.TrimSuffix(call.Webhook, ".example.com")))
			}
			if strings.Join(calls, "\n") != row.calls || evaluated(got.Evaluations) != row.evaluations {
				t.Errorf("got\n%s\n%s", strings.Join(calls, "\n"), evaluated(got.Evaluations))
			}
			if message := rejection(got); !strings.Contains(message, row.denied) || (message == "") != (row.denied == "") {
				t.Errorf("rejected with %q", message)
			}
		})
	}
}

func rejection(r *chain.Result) string {
	if r.Rejection == nil {
		return ""
	}
	return r.Rejection.Message
}

// TestExplainPolicies checks the reasons why policies are evaluated or not, and that webhooks are explained for the object
// as the policies change it.
func TestExplainPolicies(t *testing.T) {
	deny := `validations: [{expression: "false", message: never}]`
	param := "paramKind: {apiVersion: v1, kind: ConfigMap}\n" + deny
	for _, row := range []struct{ name, spec, binding, want string }{
		{"it denies", deny, "validationActions: [Deny]", "Matches, Denied: never"},
		{"it warns", deny, "validationActions: [Warn]", "Matches, Allowed: never"},
		{"a namespaceSelector", deny, "validationActions: [Deny]\nmatchResources: {namespaceSelector: {matchLabels: {a: b}}}", `NamespaceSelector the binding's namespaceSelector a=b: namespace "shop" has no label a`},
		{"an objectSelector", deny + "\nmatchConstraints: {objectSelector: {matchLabels: {app: db}}}", "validationActions: [Deny]", "ObjectSelector objectSelector app=db: the object has app=web"},
		{"an excluded rule", deny + "\nmatchConstraints: {excludeResourceRules: [{apiGroups: [''], apiVersions: ['*'], resources: [pods], operations: ['*']}]}", "validationActions: [Deny]", "Rules excludeResourceRules has a rule for CREATE of v1 pods"},
		{"no rule", deny + "\nmatchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: ['*'], resources: [pods], operations: [UPDATE]}]}", "validationActions: [Deny]", "Rules no rule in resourceRules is for CREATE of v1 pods"},
		{"a condition", deny + "\nmatchConditions: [{name: never, expression: 'false'}]", "validationActions: [Deny]", `MatchCondition condition "never" is false, Excluded`},
		{"a condition with an error", deny + "\nfailurePolicy: Ignore\nmatchConditions: [{name: error, expression: object.spec.x == 1}]", "validationActions: [Deny]", "MatchCondition a condition cannot be evaluated, and failurePolicy is Ignore, Excluded"},
		{"no parameter", param, "validationActions: [Deny]\nparamRef: {name: none, parameterNotFoundAction: Allow}", "Param its parameter does not exist, which parameterNotFoundAction Allow permits"},
		{"a parameter", param, "validationActions: [Deny]\nparamRef: {name: limits, parameterNotFoundAction: Allow}", "Matches, Denied with shop/limits: never"},
		{"a parameter that must exist", param, "validationActions: [Deny]\nparamRef: {name: none, parameterNotFoundAction: Deny}", "Matches, Failed: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"an unknown kind of parameters", "failurePolicy: Ignore\nparamKind: {apiVersion: example.com/v1, kind: None}\n" + deny, "validationActions: [Deny]\nparamRef: {name: a, parameterNotFoundAction: Deny}", "Matches, FailedOpen: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=None'"},
		{"an audit annotation that fails", deny + "\nauditAnnotations: [{key: a, valueExpression: string(object.spec.x)}]", "validationActions: [Warn]", "Matches, Failed: never: expression 'string(object.spec.x)' resulted in error: no such key: x"},
		{"an error", `validations: [{expression: object.spec.x == 1}]`, "validationActions: [Deny]", "Matches, Failed: expression 'object.spec.x == 1' resulted in error: no such key: x"},
		{"an error that is ignored", "failurePolicy: Ignore\nvalidations: [{expression: object.spec.x == 1}]", "validationActions: [Deny]", "Matches, FailedOpen: expression 'object.spec.x == 1' resulted in error: no such key: x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := chain.Policies{Params: []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "limits"}}}}
			validatingPolicy(t, &p, "policy", row.spec, row.binding)
			c := newChain(t, chain.Webhooks{}, chain.Options{Policies: p})
			got, err := c.Explain(t.Context(), createFrom(plainPod))
			if err != nil {
				t.Fatal(err)
			}
			x := got.Policies[0]
			text := strings.TrimSpace(string(x.Reason) + " " + x.Detail)
			for _, e := range x.Evaluations {
				text += ", " + strings.TrimPrefix(evaluated([]chain.Evaluation{e}), "round 0: policy ")
			}
			if text != row.want {
				t.Errorf("got  %s\nwant %s", text, row.want)
			}
			if result := admit(t, c, createFrom(plainPod)); (result.Rejection == nil) != (got.Rejection == nil) {
				t.Errorf("explained %v, but admitted with %v", got.Rejection, result.Rejection)
			}
		})
	}
}

// TestExplainAfterMutatingPolicies checks that an explanation has the object that webhooks get, and that a mutating policy
// that fails rejects before the first webhook.
func TestExplainAfterMutatingPolicies(t *testing.T) {
	selected := mutating(mutatingHook("hook.example.com", func(h *admissionregistrationv1.MutatingWebhook) {
		h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	}))
	for _, row := range []struct {
		value string
		holds chain.PredicateResult
		early bool
	}{{"'blue'", chain.Holds, false}, {"'red'", chain.Fails, false}, {"object.metadata.labels.none", chain.Fails, true}} {
		var p chain.Policies
		mutatingPolicy(t, &p, "team", jsonPatch("Never", "[JSONPatch{op: 'add', path: '/metadata/labels/team', value: "+row.value+"}]"))
		c := newChain(t, chain.Webhooks{Mutating: selected, Handlers: map[string]http.Handler{"hook.example.com": allowing()}}, chain.Options{Policies: p})
		got, err := c.Explain(t.Context(), createFrom(plainPod))
		if err != nil {
			t.Fatal(err)
		}
		if holds := got.Webhooks[0].Predicates[2]; holds.Result != row.holds || got.Early != row.early || (got.Rejection != nil) != row.early {
			t.Errorf("%s: %+v, early %t, rejection %v", row.value, holds, got.Early, got.Rejection)
		}
	}
}

// TestPoliciesThatCannotBeUsed checks the errors for policies and parameters.
func TestPoliciesThatCannotBeUsed(t *testing.T) {
	for _, row := range []struct {
		want string
		edit func(*chain.Policies)
	}{
		{"ValidatingAdmissionPolicy policy: spec.matchConstraints: Required value", func(p *chain.Policies) { p.Validating[0].Spec.MatchConstraints = nil }},
		{"ValidatingAdmissionPolicy policy: spec.matchConstraints.resourceRules: Required value", func(p *chain.Policies) { p.Validating[0].Spec.MatchConstraints.ResourceRules = nil }},
		{"spec.validations: Required value", func(p *chain.Policies) { p.Validating[0].Spec.Validations = nil }},
		{"Syntax error", func(p *chain.Policies) { p.Validating[0].Spec.Validations[0].Expression = "object." }},
		{"undeclared reference to 'objekt'", func(p *chain.Policies) { p.Validating[0].Spec.Validations[0].Expression = "objekt != null" }},
		{"spec.variables[0].expression: ", func(p *chain.Policies) {
			p.Validating[0].Spec.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: "variables.b"}}
		}},
		{"ValidatingAdmissionPolicyBinding policy: spec.policyName: Required value", func(p *chain.Policies) { p.ValidatingBindings[0].Spec.PolicyName = "" }},
		{"spec.validationActions: Required value", func(p *chain.Policies) { p.ValidatingBindings[0].Spec.ValidationActions = nil }},
		{"MutatingAdmissionPolicy team: spec.mutations: Required value", func(p *chain.Policies) { p.Mutating[0].Spec.Mutations = nil }},
		{"spec.mutations[0].jsonPatch: Required value", func(p *chain.Policies) { p.Mutating[0].Spec.Mutations[0].JSONPatch = nil }},
		{"MutatingAdmissionPolicy team: ", func(p *chain.Policies) { p.Mutating[0].Spec.Mutations[0].JSONPatch.Expression = "1" }},
		{"MutatingAdmissionPolicy team: spec.reinvocationPolicy: Required value", func(p *chain.Policies) { p.Mutating[0].Spec.ReinvocationPolicy = "" }},
		{"there are two of ValidatingAdmissionPolicy policy", func(p *chain.Policies) { p.Validating = append(p.Validating, p.Validating[0]) }},
		{"Policies has a nil element", func(p *chain.Policies) { p.Validating = append(p.Validating, nil) }},
		{"must not contain both Deny and Warn", func(p *chain.Policies) {
			p.ValidatingBindings[0].Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny, admissionregistrationv1.Warn}
		}},
		{"spec.paramRef.parameterNotFoundAction: Required value", func(p *chain.Policies) {
			p.ValidatingBindings[0].Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "a"}
		}},
		{"spec.validations[0].expression: ", func(p *chain.Policies) { p.Validating[0].Spec.Validations[0].Expression = "1" }},
		{"MutatingAdmissionPolicyBinding team: spec.policyName: Required value", func(p *chain.Policies) { p.MutatingBindings[0].Spec.PolicyName = "" }},
		{"Params[0]: ", func(p *chain.Policies) { p.Params = []runtime.Object{&metav1.Status{}} }},
	} {
		var p chain.Policies
		validatingPolicy(t, &p, "policy", `validations: [{expression: "true"}]`, "validationActions: [Deny]")
		mutatingPolicy(t, &p, "team", jsonPatch("Never", "[JSONPatch{op: 'add', path: '/a', value: '1'}]"))
		row.edit(&p)
		if c, err := chain.New(chain.Webhooks{}, chain.Options{Policies: p}); err == nil {
			t.Errorf("want an error with %q", row.want)
			_ = c.Close() // it has no connections
		} else if !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}

// A policy is evaluated between the mutating and the validating webhooks.
func ExampleOptions_policies() {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-latest"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: podConstraints(),
			Validations:      []admissionregistrationv1.Validation{{Expression: "object.spec.containers.all(c, !c.image.endsWith(':latest'))", Message: "an image needs a version"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "no-latest"},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "no-latest", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	engine, err := chain.New(chain.Webhooks{}, chain.Options{Policies: chain.Policies{
		Validating:         []*admissionregistrationv1.ValidatingAdmissionPolicy{policy},
		ValidatingBindings: []*admissionregistrationv1.ValidatingAdmissionPolicyBinding{binding},
	}})
	if err != nil {
		panic(err)
	}
	result, err := engine.Admit(context.Background(), createFrom(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"web","image":"web:latest"}]}}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Rejection.Message)
	if err := engine.Close(); err != nil {
		panic(err)
	}
	// Output:
	// pods "web" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'no-latest' denied request: an image needs a version
}
