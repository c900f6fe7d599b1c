// SPDX-License-Identifier: Apache-2.0

package chain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Explanation lists the webhooks that an API server would call for a request, and why. No webhook is called: the
// explanation assumes that each one allows the request and changes nothing.
type Explanation struct {
	// Webhooks are in the order in which the API server calls them, mutating webhooks first.
	Webhooks []Explained
	// Rejection is the status if the API server itself rejects the request, or nil. It rejects
	// before it calls validating webhooks or, if Early, before it calls any webhook.
	Rejection *metav1.Status
	Early     bool
	// Twice is set for a deletion in two steps. The API server calls the webhooks in each step.
	Twice bool
}

// Explained describes one webhook of an [Explanation].
type Explained struct {
	Configuration, Webhook string
	Mutating               bool
	// Index is the webhook's index among all mutating or all validating webhooks.
	Index int
	// Predicates are the conditions for calling the webhook, in the API server's order. The API
	// server stops at the first that fails. This list has the others too, but matchConditions
	// only if a rule matches.
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
	// Condition is the name of a matchCondition.
	Condition string
	Result    PredicateResult
	// Detail describes the result: the labels, the rule or the error.
	Detail string
}

// A PredicateResult is the result of a predicate.
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
