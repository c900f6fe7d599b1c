// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Explanation says for each webhook whether an API server would call it for a request, and why. No webhook is
// called: the explanation assumes that each one allows the request and changes nothing.
type Explanation struct {
	// Webhooks are in the order in which the API server calls them, mutating webhooks first.
	Webhooks []Explained
	// Policies are the admission policies, each with one of its bindings, in the order in which the API server evaluates
	// them: mutating policies before the first webhook, and validating policies before the first validating webhook.
	// Mutating policies change the object for the predicates of the webhooks. Explain evaluates them once, although their
	// own changes may let the API server evaluate them again.
	Policies []ExplainedPolicy
	// Rejection is the status if the API server itself rejects the request, or nil. It rejects
	// before it calls validating webhooks or, if Early, before it calls any webhook.
	Rejection *metav1.Status
	Early     bool
	// Twice is set if the API server deletes the object in two steps, as it does with a Pod without a grace period. It
	// calls the webhooks in each step.
	Twice bool
}

// Explained describes one webhook of an [Explanation].
type Explained struct {
	Configuration, Webhook string
	Mutating               bool
	// Index is the webhook's index among all mutating or all validating webhooks.
	Index int
	// Predicates are the conditions for calling the webhook, in the API server's order. The API
	// server stops at the first that fails. Predicates lists the later ones too, but lists
	// matchConditions only if a rule matches.
	Predicates []Predicate
	// Kind and Resource are the ones that the webhook would receive. Under matchPolicy Equivalent
	// their version can differ from the request's. They are empty if no rule matches.
	Kind     metav1.GroupVersionKind
	Resource metav1.GroupVersionResource
}

// A Predicate is one condition for calling a webhook, with its result.
type Predicate struct {
	// Reason is [ByResource], [ByNamespaceSelector], [ByObjectSelector], [ByRules] or
	// [ByMatchCondition].
	Reason Reason
	// Condition is the name of the matchCondition if Reason is ByMatchCondition.
	Condition string
	Result    PredicateResult
	// Detail describes the result: the labels, the rule or the error.
	Detail string
	// Mismatches has an entry for each rule if Reason is ByRules and Result is Fails.
	Mismatches []RuleMismatch
}

// maxMismatches is how many mismatching rules String lists. If only one more is left, String lists that one, too.
const maxMismatches = 4

// String returns Detail with the mismatches of the rules.
func (p Predicate) String() string {
	text := p.Detail
	for i, m := range p.Mismatches {
		if i == maxMismatches && len(p.Mismatches) > maxMismatches+1 {
			return fmt.Sprintf("%s; and %d more", text, len(p.Mismatches)-i)
		}
		separator := ";"
		if i == 0 {
			separator = ":"
		}
		text += separator + " " + m.String()
	}
	return text
}

// A RuleMismatch states why a rule of a webhook does not cover a request.
type RuleMismatch struct {
	// Index is the index of the rule in the webhook's rules.
	Index int
	// Rule has the fields of the rule that do not cover the request. The other fields are empty.
	Rule admissionregistrationv1.RuleWithOperations
}

// String describes the mismatch: rules[0] has operations ["UPDATE"].
func (m RuleMismatch) String() string {
	var parts []string
	add := func(field string, values any) { parts = append(parts, fmt.Sprintf("%s %q", field, values)) }
	if m.Rule.Operations != nil {
		add("operations", m.Rule.Operations)
	}
	if m.Rule.APIGroups != nil {
		add("apiGroups", m.Rule.APIGroups)
	}
	if m.Rule.APIVersions != nil {
		add("apiVersions", m.Rule.APIVersions)
	}
	if m.Rule.Resources != nil {
		add("resources", m.Rule.Resources)
	}
	if m.Rule.Scope != nil {
		add("scope", *m.Rule.Scope)
	}
	return fmt.Sprintf("rules[%d] has %s", m.Index, strings.Join(parts, ", "))
}

// A PredicateResult says whether a [Predicate] holds for a request, or why that is not known.
type PredicateResult string

// The results of a predicate.
const (
	Holds PredicateResult = "Holds"
	Fails PredicateResult = "Fails"
	// Errs: the API server cannot evaluate the predicate and rejects the request. Under
	// failurePolicy Ignore, a condition with an error counts as false instead.
	Errs PredicateResult = "Errs"
	// Unknown: an API server could evaluate the predicate, but this engine cannot.
	Unknown PredicateResult = "Unknown"
)
