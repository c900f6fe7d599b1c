// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/pkg/chain"
)

// byPolicy sets the result of a predicate to unknown if looks is true and an admission policy may change the object
// before webhooks are called. looks means that the predicate looks at the object.
func (t *explainer) byPolicy(p *Predicate, looks bool) {
	if looks && len(t.policies) > 0 && p.Answer != chain.Unknown {
		p.set(chain.Unknown, fmt.Sprintf("MutatingAdmissionPolicy %s may change the object before webhooks are called", or(t.policies)))
	}
}

// A Policy is the explanation for an admission policy with one of its bindings.
type Policy struct {
	Type    string `json:"type"` // "mutating" or "validating"
	Name    string `json:"name"`
	Binding string `json:"binding"`
	// Applies states whether the policy is evaluated for the request and has an effect.
	Applies Called `json:"applies"`
	// Decision is as in a Webhook, or "Param" if the parameter of the policy does not exist.
	Decision chain.Reason `json:"decision"`
	Why      string       `json:"why"`
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
	// Failures are the messages of validations that do not hold, and the errors of expressions.
	Failures []string `json:"failures,omitempty"`
	// Actions are the validationActions of the binding.
	Actions []admissionregistrationv1.ValidationAction `json:"actions,omitempty"`
}

// explainPolicies returns the explanations of the policies. It adds the mutating policies whose effect is unknown to
// t.policies.
func (t *explainer) explainPolicies(e *chain.Explanation) []Policy {
	all := make([]Policy, 0, len(e.Policies))
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
		if why := t.unknownPolicy(x); why != "" {
			p.Applies, p.Why, p.Effects = Unknown, why, nil
			if x.Mutating && !slices.Contains(t.policies, p.Name) {
				t.policies = append(t.policies, p.Name)
			}
			t.unsurePolicies = true
		}
		all = append(all, p)
	}
	return all
}

// unknownPolicy returns why the result of a policy is unknown, or "".
func (t *explainer) unknownPolicy(x *chain.ExplainedPolicy) string {
	pairs := t.facts.policies.pairs()
	of := pairs[slices.IndexFunc(pairs, func(p pair) bool { return p.policy == x.Policy && p.binding == x.Binding && p.mutating == x.Mutating })]
	switch x.Reason {
	case chain.ByResource, chain.ByRules, chain.ByObjectSelector:
		if x.Reason == chain.ByObjectSelector && !x.Mutating && len(t.policies) > 0 {
			break
		}
		return ""
	}
	words := mentioned(of.expressions)
	switch {
	case t.namespaceUnknown && (of.selectsNamespaces || words.words["namespaceObject"]):
		return fmt.Sprintf("the labels of namespace %q are unknown", t.req.Namespace)
	case t.facts.authorizer == nil && words.words["authorizer"] && !slices.Contains(t.req.User.Groups, "system:masters"):
		return "it asks for permissions, which are unknown"
	}
	if why := t.facts.policies.unknownParams(of, t.req.Namespace); why != "" {
		return why
	}
	answer := chain.Holds
	if slices.ContainsFunc(x.Evaluations, func(one chain.Evaluation) bool { return len(one.Failures) > 0 }) {
		answer = chain.Fails
	}
	p := Predicate{Expression: of.expressions, Answer: answer}
	t.condition(&hook{mutating: x.Mutating}, &chain.Explained{Kind: metav1.GroupVersionKind(t.req.kind)}, &p)
	if p.Answer != chain.Unknown {
		t.byPolicy(&p, !x.Mutating && words.object)
	}
	if p.Answer == chain.Unknown {
		return p.Detail
	}
	return ""
}

// unknownParams returns why the parameters of a policy are unknown, or "".
func (p *policies) unknownParams(of pair, namespace string) string {
	params, ok := of.params(namespace)
	if !ok {
		return ""
	}
	err, read := p.asked[params]
	switch {
	case err != nil:
		return fmt.Sprintf("its parameters of kind %s cannot be read: %v", of.kind.Kind, err)
	case read, of.ref.Name != "" && slices.ContainsFunc(p.given, func(o *objects.Object) bool {
		return o.GVK == *of.kind && o.Name == of.ref.Name && (o.Namespace == params.namespace || o.Namespace == "")
	}):
		return ""
	}
	return fmt.Sprintf("its parameter, a %s, is not in these files", of.kind.Kind)
}

// policyRejection returns the policy that rejects a request, such as "ValidatingAdmissionPolicy a", or "". unsure means
// that it is not known whether the policy rejects it.
func (t *explainer) policyRejection(e *chain.Explanation, all []Policy) (by string, unsure bool) {
	if e.Rejection == nil {
		return "", false
	}
	for i, x := range e.Policies {
		for _, one := range x.Evaluations {
			if one.Effect == chain.Denied || one.Effect == chain.Failed {
				return all[i].kind() + " " + all[i].Name, all[i].Applies == Unknown
			}
		}
	}
	return "", t.unsurePolicies // a parameter or the configuration of a policy may be the reason
}

func (p *Policy) kind() string {
	if p.Type == "mutating" {
		return "MutatingAdmissionPolicy"
	}
	return "ValidatingAdmissionPolicy"
}

// rejects reports whether the policy rejects the request.
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
		return "it cannot be evaluated, so the request is rejected" + failures
	case e.Effect == chain.FailedOpen:
		return "it cannot be evaluated, which failurePolicy Ignore ignores" + failures
	case e.Effect == chain.Excluded:
		return "a condition excludes the request"
	case len(e.Failures) > 0:
		var actions []string
		for _, a := range e.Actions {
			actions = append(actions, map[admissionregistrationv1.ValidationAction]string{admissionregistrationv1.Warn: "the client gets a warning", admissionregistrationv1.Audit: "the audit event has a note"}[a])
		}
		return "it allows the request, and " + strings.Join(actions, " and ") + failures
	case e.Changes:
		return "it changes the object"
	case len(e.Actions) == 0:
		return "it changes nothing"
	}
	return "it allows the request"
}
