// SPDX-License-Identifier: Apache-2.0

// Package rulematch decides whether a rule of a webhook configuration covers a request. It follows
// rules.Matcher of k8s.io/apiserver without importing that module.
package rulematch

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A Request is the part of an admission request that rules look at.
type Request struct {
	Operation                admissionregistrationv1.OperationType
	Group, Version, Resource string
	SubResource              string
	// Namespaced reports whether the object is in a namespace. A Namespace itself is not.
	Namespaced bool
}

// Matches reports whether the rule covers the request. It does not consider equivalent versions of the resource
// (matchPolicy: Equivalent).
func Matches(rule admissionregistrationv1.RuleWithOperations, r Request) bool {
	return MatchesScope(rule.Scope, r.Namespaced) && MatchesAnyScope(rule, r)
}

// MatchesAnyScope does the same as Matches, but ignores the scope of the rule.
func MatchesAnyScope(rule admissionregistrationv1.RuleWithOperations, r Request) bool {
	return Contains(rule.Operations, r.Operation) && Contains(rule.APIGroups, r.Group) && Contains(rule.APIVersions, r.Version) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool { return MatchesResource(pattern, r.Resource, r.SubResource) })
}

// Contains reports whether the list has the value or "*".
func Contains[S ~string](list []S, value S) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// MatchesScope reports whether a rule with the scope covers namespaced or cluster-scoped objects. A rule
// without a scope covers both.
func MatchesScope(scope *admissionregistrationv1.ScopeType, namespaced bool) bool {
	switch {
	case scope == nil || *scope == admissionregistrationv1.AllScopes:
		return true
	case *scope == admissionregistrationv1.NamespacedScope:
		return namespaced
	}
	return !namespaced
}

// MatchesResource reports whether an entry of a rule's resources covers a resource or subresource.
// An entry a/* covers a and all subresources of a, as in the API server.
func MatchesResource(pattern, resource, subresource string) bool {
	name, sub, _ := strings.Cut(pattern, "/")
	return (name == "*" || name == resource) && (sub == "*" || sub == subresource)
}
