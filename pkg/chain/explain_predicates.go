// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// explain evaluates all predicates. Unlike decide, it does not stop at the deciding one.
func (p *predicates) explain(ctx context.Context, h *inprocess.Hook, a admission.Attributes, o inprocess.Interfaces) Explained {
	e := Explained{Configuration: h.Configuration, Webhook: h.GetName(), Mutating: h.Mutating, Index: h.Index}
	e.Predicates = append(e.Predicates, exempt(a), p.explainNamespace(h, a), p.explainObject(h, a))
	byRules, match := explainRules(h, a, o)
	e.Predicates = append(e.Predicates, byRules)
	if match == nil {
		return e
	}
	e.Kind, e.Resource = metav1.GroupVersionKind(match.kind), metav1.GroupVersionResource(match.resource)
	e.Predicates = append(e.Predicates, p.explainConditions(ctx, h, a, match.kind, o)...)
	return e
}

// exempt returns the predicate with the reason ByResource. The predicate fails for resources for which the API server
// calls no webhooks.
func exempt(a admission.Attributes) Predicate {
	if rules.IsExemptAdmissionConfigurationResource(a) {
		return Predicate{Reason: ByResource, Result: Fails, Detail: fmt.Sprintf("no webhook is called for a %s", a.GetKind().Kind)}
	}
	return Predicate{Reason: ByResource, Result: Holds, Detail: fmt.Sprintf("webhooks can be called for kind %s", a.GetKind().Kind)}
}

// answerOf returns Holds for true and Fails for false.
func answerOf(holds bool) PredicateResult {
	if holds {
		return Holds
	}
	return Fails
}

func (p *predicates) explainNamespace(h *inprocess.Hook, a admission.Attributes) Predicate {
	matches, err := p.namespaces.MatchNamespaceSelector(h, a)
	e := Predicate{Reason: ByNamespaceSelector, Result: answerOf(matches)}
	selector, _ := h.GetParsedNamespaceSelector() // MatchNamespaceSelector returns the same error
	switch {
	case err != nil:
		e.Result, e.Detail = Errs, err.Error()
	case a.GetNamespace() == "" && a.GetResource().Resource != "namespaces":
		e.Detail = "it is in no namespace"
	case selector.Empty():
		e.Detail = "every namespace matches"
	default:
		of, err := p.namespaces.GetNamespaceLabels(a)
		if err != nil {
			e.Detail = err.Error()
			break
		}
		e.Detail = labelsText(whoseLabels(a), selector, of)
	}
	return e
}

func (p *predicates) explainObject(h *inprocess.Hook, a admission.Attributes) Predicate {
	matches, err := p.objects.MatchObjectSelector(h, a)
	e := Predicate{Reason: ByObjectSelector, Result: answerOf(matches)}
	selector, _ := h.GetParsedObjectSelector() // MatchObjectSelector returns the same error
	switch {
	case err != nil:
		e.Result, e.Detail = Errs, err.Error()
	case selector.Empty():
		e.Detail = "every object matches"
	default:
		e.Detail = objectLabelsText(selector, a.GetObject(), a.GetOldObject())
	}
	return e
}

// objectLabelsText describes the labels of the object. It describes the old object if only the old object matches, or
// if there is no new object.
func objectLabelsText(selector labels.Selector, object, old runtime.Object) string {
	of, ok := labelsOf(object)
	ofOld, okOld := labelsOf(old)
	switch {
	case ok && (selector.Matches(of) || !okOld || !selector.Matches(ofOld)):
		return labelsText("the object", selector, of)
	case okOld:
		return labelsText("the old object", selector, ofOld)
	}
	return "the object has no metadata, so no selector matches"
}

// labelsOf returns the labels of an object. It reports false if there is no object, or if it has no metadata.
func labelsOf(object runtime.Object) (labels.Set, bool) {
	if object == nil {
		return nil, false
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, false
	}
	return m.GetLabels(), true
}

// labelsText describes the labels that a selector requires. If some do not match, it describes only the first
// requirement that is not met.
func labelsText(what string, selector labels.Selector, of labels.Set) string {
	requirements, _ := selector.Requirements()
	if i := slices.IndexFunc(requirements, func(r labels.Requirement) bool { return !r.Matches(of) }); i >= 0 {
		requirements = requirements[i : i+1]
	}
	var asks, has []string
	for _, r := range requirements {
		asks = append(asks, r.String())
		has = append(has, label(r.Key(), of))
	}
	return fmt.Sprintf("%s: %s has %s", strings.Join(asks, ","), what, strings.Join(slices.Compact(has), ", "))
}

func label(key string, of labels.Set) string {
	if value, ok := of[key]; ok {
		return fmt.Sprintf("%s=%s", key, value)
	}
	return "no label " + key
}

// explainRules returns the result of the rules, and the rule that covers the request, if there is one. It also finds rules
// for versions to which an API server can convert, but this engine cannot.
func explainRules(h *inprocess.Hook, a admission.Attributes, o inprocess.Interfaces) (Predicate, *ruleMatch) {
	match, err := matchRules(h, a, o.GetEquivalentResourceMapper())
	if err != nil {
		return Predicate{Reason: ByRules, Result: Errs, Detail: err.Error()}, nil
	}
	if match == nil {
		match = matchNotConverted(h, a, o)
	}
	if match != nil {
		return Predicate{Reason: ByRules, Result: Holds, Detail: match.String()}, match
	}
	e := Predicate{Reason: ByRules, Result: Fails, Detail: noRule(a)}
	for i, rule := range h.GetRules() {
		e.Mismatches = append(e.Mismatches, mismatch(i, rule, a))
	}
	return e, nil
}

// matchNotConverted returns the first rule for an equivalent resource to which this engine cannot convert, or nil.
func matchNotConverted(h *inprocess.Hook, a admission.Attributes, o inprocess.Interfaces) *ruleMatch {
	if *h.GetMatchPolicy() != admissionregistrationv1.Equivalent || a.GetSubresource() != "" {
		return nil
	}
	for i, rule := range h.GetRules() {
		for _, other := range o.NotConverted(a.GetResource(), a.GetKind()) {
			as := withResource{a, other}
			if m := (rules.Matcher{Rule: rule, Attr: as}); m.Matches() {
				return &ruleMatch{rule: i, attributes: as, kind: other.GroupVersion().WithKind(a.GetKind().Kind), resource: other, equivalent: true}
			}
		}
	}
	return nil
}

// mismatch returns the fields of a rule that do not cover the request.
func mismatch(index int, rule admissionregistrationv1.RuleWithOperations, a admission.Attributes) RuleMismatch {
	star := []string{"*"}
	differs := func(edit func(*admissionregistrationv1.RuleWithOperations)) bool {
		every := admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{"*"},
			Rule: admissionregistrationv1.Rule{APIGroups: star, APIVersions: star, Resources: []string{"*/*"}}}
		edit(&every)
		m := rules.Matcher{Rule: every, Attr: a}
		return !m.Matches()
	}
	m := RuleMismatch{Index: index}
	if differs(func(r *admissionregistrationv1.RuleWithOperations) { r.Operations = rule.Operations }) {
		m.Rule.Operations = rule.Operations
	}
	if differs(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = rule.APIGroups }) {
		m.Rule.APIGroups = rule.APIGroups
	}
	if differs(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = rule.APIVersions }) {
		m.Rule.APIVersions = rule.APIVersions
	}
	if differs(func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = rule.Resources }) {
		m.Rule.Resources = rule.Resources
	}
	if differs(func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = rule.Scope }) {
		m.Rule.Scope = rule.Scope
	}
	return m
}

// whoseLabels names the object whose labels a namespaceSelector reads. On CREATE and UPDATE of a resource named namespaces,
// of any group, that is the object itself (GetNamespaceLabels).
func whoseLabels(a admission.Attributes) string {
	changed := a.GetOperation() == admission.Create || a.GetOperation() == admission.Update
	if r := a.GetResource(); r.Resource == "namespaces" && r.Group != "" && a.GetSubresource() == "" && changed {
		return "the object itself (its resource is named namespaces)"
	}
	return fmt.Sprintf("namespace %q", a.GetNamespace())
}
