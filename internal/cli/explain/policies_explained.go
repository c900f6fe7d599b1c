// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/internal/rulematch"
	"github.com/admitkit/admitkit/pkg/chain"
)

// byPolicy sets the result of a predicate to unknown if it reads the object, and an admission policy with an unknown effect
// may change the object before webhooks are called.
func (t *explainer) byPolicy(p *Predicate, readsObject bool) {
	if readsObject && len(t.policies) > 0 && p.Answer != chain.Unknown {
		p.set(chain.Unknown, fmt.Sprintf("depends on MutatingAdmissionPolicy %s, which may change the object before webhooks are called", or(t.policies)))
	}
}

// A Policy is the explanation for an admission policy with one of its bindings.
type Policy struct {
	Type    string `json:"type"` // "mutating" or "validating"
	Name    string `json:"name"`
	Binding string `json:"binding"`
	// Applies states whether the policy is evaluated for the request and has an effect.
	Applies Called `json:"applies"`
	// Decision has the same values as that of a Webhook, and "Param" if the parameter of the policy does not exist, or
	// "Binding" if the policy has no binding.
	Decision chain.Reason `json:"decision"`
	Why      string       `json:"why"`
	// DependsOn are mutating webhooks whose patches may change the result of a validating policy.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Effects are the effects of the policy, one for each parameter.
	Effects []PolicyEffect `json:"effects,omitempty"`
}

// A PolicyEffect is the effect of a policy with one parameter.
type PolicyEffect struct {
	// Param is the namespace and the name of the parameter, or empty.
	Param string `json:"param,omitempty"`
	// Effect is "Allowed", "Denied", "Failed", "FailedOpen" or "Excluded".
	Effect chain.Effect `json:"effect"`
	// Changes means that the policy changes the object.
	Changes bool `json:"changes,omitempty"`
	// Failures are the messages of failed validations, and the errors of expressions.
	Failures []string `json:"failures,omitempty"`
	// Actions are the validationActions of the binding.
	Actions []admissionregistrationv1.ValidationAction `json:"actions,omitempty"`
}

// explainPolicies returns the explanations of the policies. It adds the mutating policies whose effect is unknown to
// t.policies.
func (t *explainer) explainPolicies(e *chain.Explanation) []Policy {
	all := make([]Policy, 0, len(e.Policies))
	pairs := t.facts.policies.pairs()
	unsure := "" // the first policy of which it is unknown whether it rejects the request
	for i := range e.Policies {
		x := &e.Policies[i]
		p := Policy{Type: "validating", Name: x.Policy, Binding: x.Binding, Applies: Yes, Decision: x.Reason, Why: x.Detail}
		if x.Mutating {
			p.Type = "mutating"
		}
		for _, one := range x.Evaluations {
			p.Effects = append(p.Effects, PolicyEffect{one.Param, one.Effect, one.Mutated, one.Failures, one.Actions})
		}
		if x.Reason != chain.Matches {
			p.Applies = No
		}
		of := pairs[slices.IndexFunc(pairs, func(p pair) bool { return p.policy == x.Policy && p.binding == x.Binding && p.mutating == x.Mutating })]
		why := t.unknownPolicy(x, of)
		if x.Reason == chain.ByRejection && unsure != "" && why == "" {
			why = fmt.Sprintf("it is unknown whether %s rejects the request before", unsure)
		}
		if why != "" {
			if p.rejects() && unsure == "" {
				unsure = p.kind() + " " + p.Name
			}
			p.Applies, p.Why, p.Effects = Unknown, why, nil
			if x.Mutating && !slices.Contains(t.policies, p.Name) {
				t.policies = append(t.policies, p.Name)
			}
		}
		all = append(all, p)
	}
	return append(all, t.unboundPolicies()...)
}

// unboundPolicies returns the policies that have no binding, if they can match the request.
func (t *explainer) unboundPolicies() (all []Policy) {
	applies, why := No, "it has no binding, so it does nothing"
	if t.facts.policies.unbound {
		applies, why = Unknown, "it has no binding in these files"
	}
	for _, p := range t.facts.policies.withoutBinding() {
		if t.matchesSome(p.rules) && !(p.mutating && t.req.Operation == admissionv1.Delete) {
			one := Policy{Type: "validating", Name: p.policy, Applies: applies, Decision: byBinding, Why: why}
			if p.mutating {
				one.Type = "mutating"
			}
			all = append(all, one)
		}
	}
	return all
}

// byBinding is the decision about a policy without a binding.
const byBinding chain.Reason = "Binding"

// matchesSome reports whether a rule is for the resource and the operation of the request, in any version.
func (t *explainer) matchesSome(rules []admissionregistrationv1.NamedRuleWithOperations) bool {
	return slices.ContainsFunc(rules, func(named admissionregistrationv1.NamedRuleWithOperations) bool {
		rule := named.RuleWithOperations
		rule.APIVersions = []string{"*"}
		return rulematch.Matches(rule, t.req.ruleRequest())
	})
}

// unknownPolicy returns why the result of a policy is unknown, or "".
func (t *explainer) unknownPolicy(x *chain.ExplainedPolicy, of pair) string {
	others := slices.DeleteFunc(slices.Clone(t.policies), func(name string) bool { return x.Mutating && name == x.Policy })
	if len(others) > 0 && of.selectsObjects && x.Reason != chain.ByRules && x.Reason != chain.ByResource {
		return changedBefore(others)
	}
	switch x.Reason {
	case chain.ByResource, chain.ByObjectSelector:
		return ""
	case chain.ByRules:
		if of.equivalent && t.req.resource.definition == nil && t.matchesSome(of.rules) {
			return fmt.Sprintf("it has a rule for %s, but not for version %s: the API server may convert the object to a version of the rule", t.req.resource.GroupResource(), t.req.resource.Version)
		}
		return ""
	}
	words := mentioned(of.expressions)
	switch {
	case t.namespaceUnknown && of.selectsNamespaces, t.namespaceUnknown && readsLabels(of.expressions):
		return fmt.Sprintf("the labels of namespace %q are unknown", t.req.Namespace)
	case readsNamespace(of.expressions):
		return "it reads fields of the Namespace that explain does not know: it knows the name and the labels"
	case t.facts.authorizer == nil && words.words["authorizer"] && !slices.Contains(t.req.User.Groups, "system:masters"):
		return "it checks permissions that are unknown: use --allow"
	case x.Mutating && t.req.generated:
		return fmt.Sprintf("it changes the %s that a client sends, which is unknown", t.req.kind.Kind)
	}
	if why := t.unknownParams(of); why != "" {
		return why
	}
	answer := chain.Holds
	if slices.ContainsFunc(x.Evaluations, func(one chain.Evaluation) bool { return len(one.Failures) > 0 }) {
		answer = chain.Fails
	}
	p := Predicate{Expression: of.expressions, Answer: answer}
	t.condition(&hook{mutating: x.Mutating}, &chain.Explained{Kind: metav1.GroupVersionKind(t.req.kind)}, &p)
	switch {
	case p.Answer == chain.Unknown:
		return p.Detail
	case words.object && len(others) > 0:
		return changedBefore(others)
	}
	return ""
}

// changedBefore says that mutating policies with an unknown effect may change the object.
func changedBefore(policies []string) string {
	return fmt.Sprintf("MutatingAdmissionPolicy %s, whose effect is unknown, may change the object before", or(policies))
}

var namespaceFields = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bnamespaceObject\s*\.\s*metadata\s*\.\s*(name|labels)\b`)
})

// readsLabels reports whether expressions read the labels of the Namespace, or all of it.
func readsLabels(expressions string) bool {
	return strings.Contains(expressions, "namespaceObject")
}

// readsNamespace reports whether expressions read more of the Namespace than its name and labels.
func readsNamespace(expressions string) bool {
	return strings.Contains(namespaceFields().ReplaceAllString(expressions, ""), "namespaceObject")
}

// unknownParams returns why the parameters of a policy are unknown, or "".
func (t *explainer) unknownParams(of pair) string {
	namespace := t.req.Namespace
	if t.req.resource.GroupResource() == (schema.GroupResource{Resource: "namespaces"}) {
		namespace = t.name() // the API server uses its own name
	}
	params, ok := of.params(namespace)
	if !ok {
		return ""
	}
	p := &t.facts.policies
	builtIn := scheme.Scheme.Recognizes(params.kind)
	defined := t.facts.definition(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == params.kind.Group && d.Spec.Names.Kind == params.kind.Kind
	}) != nil
	err, read := p.asked[params]
	switch {
	case !builtIn && !defined && !p.live():
		return fmt.Sprintf("the CustomResourceDefinition of %s is not in these files: add it with -w", params.kind.Kind)
	case !builtIn && !defined:
		return fmt.Sprintf("the CustomResourceDefinition of %s is unknown", params.kind.Kind)
	case params.namespace == "" && t.facts.namespacedParam(params.kind): // the API server reads no parameter
		return ""
	case err != nil:
		return fmt.Sprintf("its parameters of kind %s cannot be read: %v", params.kind.Kind, err)
	case read:
		return ""
	case params.name == "":
		return fmt.Sprintf("its parameters of kind %s are selected by their labels, and files may not have all of them", params.kind.Kind)
	case p.has(params, t.facts.namespacedParam(params.kind)):
		return ""
	}
	return fmt.Sprintf("its parameter %s is not in these files", params)
}

// policyRejection returns the rejection by a policy. unsure means that it is not known whether a policy rejects the
// request.
func (t *explainer) policyRejection(e *chain.Explanation, all []Policy) (by *Rejection, unsure bool) {
	if e.Rejection == nil {
		return nil, false
	}
	for i, x := range e.Policies {
		for _, one := range x.Evaluations {
			if one.Effect != chain.Denied && one.Effect != chain.Failed {
				continue
			}
			if all[i].Applies == Unknown || len(all[i].DependsOn) > 0 {
				unsure = true
				continue
			}
			r := &Rejection{By: all[i].kind() + " " + all[i].Name, Before: "validating webhooks", Code: e.Rejection.Code, Message: e.Rejection.Message}
			if x.Mutating {
				r.Before = "mutating webhooks"
			}
			if unsure && len(one.Failures) > 0 { // the message is that of another policy
				r.Message = one.Failures[0]
			}
			return r, false
		}
	}
	return nil, unsure
}

// depend records for each validating policy the mutating webhooks whose patches may change its result.
func (t *explainer) depend(all []Policy) {
	pairs := t.facts.policies.pairs()
	changing := names(t.webhooks)
	if t.req.Operation == admissionv1.Delete {
		changing = nil // there is nothing to change
	}
	for i := range all {
		p := &all[i]
		for _, of := range pairs {
			if p.Type == "validating" && of.policy == p.Name && of.binding == p.Binding && !of.mutating && p.Applies != Unknown &&
				p.Decision != chain.ByRules && p.Decision != chain.ByResource && (of.selectsObjects || mentioned(of.expressions).object) {
				p.DependsOn = changing
			}
		}
	}
}

func (p *Policy) kind() string {
	if p.Type == "mutating" {
		return "MutatingAdmissionPolicy"
	}
	return "ValidatingAdmissionPolicy"
}

// rejects reports whether the policy rejects the object as it is.
func (p *Policy) rejects() bool {
	return slices.ContainsFunc(p.Effects, func(e PolicyEffect) bool { return e.Effect == chain.Denied || e.Effect == chain.Failed })
}

// sentences describe the effects of the policy.
func (p *Policy) sentences() (all []string) {
	if p.Applies != Yes || p.Why != "" {
		return []string{p.Why}
	}
	for _, e := range p.Effects {
		sentence := e.String()
		if len(p.DependsOn) > 0 && (e.Effect == chain.Denied || e.Effect == chain.Failed) {
			sentence = "unless a webhook changes the object, " + sentence
		}
		if e.Param != "" {
			sentence = "with " + e.Param + ": " + sentence
		}
		all = append(all, sentence)
	}
	return all
}

// String describes the effect, such as "it changes the object".
func (e PolicyEffect) String() string {
	failures := ": " + strings.Join(e.Failures, "; ")
	switch {
	case e.Effect == chain.Denied:
		return "it denies the request" + failures
	case e.Effect == chain.Failed:
		return "it fails, so the request is rejected" + failures
	case e.Effect == chain.FailedOpen:
		return "it fails, and failurePolicy Ignore lets the request continue" + failures
	case e.Effect == chain.Excluded:
		return "a matchCondition is false"
	case len(e.Failures) > 0:
		var actions []string
		for _, a := range e.Actions {
			actions = append(actions, map[admissionregistrationv1.ValidationAction]string{admissionregistrationv1.Warn: "the client gets a warning", admissionregistrationv1.Audit: "the audit event gets an annotation"}[a])
		}
		return "it allows the request, and " + strings.Join(actions, " and ") + failures
	case e.Changes:
		return "it changes the object"
	case len(e.Actions) == 0:
		return "it changes nothing"
	}
	return "it allows the request"
}
