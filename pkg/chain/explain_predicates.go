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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// explain asks all predicates, where decide stops at the first that decides.
func (p *predicates) explain(ctx context.Context, h *inprocess.Hook, a admission.Attributes, o inprocess.Interfaces) Explained {
	e := Explained{Configuration: h.Configuration, Webhook: h.GetName(), Mutating: h.Mutating, Index: h.Index}
	e.Predicates = append(e.Predicates, exempt(a), p.explainNamespace(h, a), p.explainObject(h, a))
	by, kind, resource := explainRules(h, a, o)
	e.Predicates = append(e.Predicates, by)
	if resource.Resource == "" {
		return e
	}
	e.Kind, e.Resource = metav1.GroupVersionKind(kind), metav1.GroupVersionResource(resource)
	e.Predicates = append(e.Predicates, p.explainConditions(ctx, h, a, kind, o)...)
	return e
}

func exempt(a admission.Attributes) Predicate {
	if rules.IsExemptAdmissionConfigurationResource(a) {
		return Predicate{Reason: ByResource, Result: Fails, Detail: fmt.Sprintf("no webhook is asked about a %s", a.GetKind().Kind)}
	}
	return Predicate{Reason: ByResource, Result: Holds, Detail: fmt.Sprintf("webhooks are asked about kind %s", a.GetKind().Kind)}
}

func answerOf(holds bool) PredicateResult {
	if holds {
		return Holds
	}
	return Fails
}

func (p *predicates) explainNamespace(h *inprocess.Hook, a admission.Attributes) Predicate {
	matches, err := p.namespaces.MatchNamespaceSelector(h, a)
	e := Predicate{Reason: ByNamespaceSelector, Result: answerOf(matches)}
	selector, _ := h.GetParsedNamespaceSelector() // an error is one of the match, too
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
	selector, _ := h.GetParsedObjectSelector() // an error is one of the match, too
	switch {
	case err != nil:
		e.Result, e.Detail = Errs, err.Error()
	case selector.Empty():
		e.Detail = "every object matches"
	default:
		e.Detail = selectedObject(selector, a.GetObject(), a.GetOldObject())
	}
	return e
}

// selectedObject tells of the object or, where only that matches or is there, of the old one.
func selectedObject(selector labels.Selector, object, old runtime.Object) string {
	of, ok := labelsOf(object)
	ofOld, okOld := labelsOf(old)
	switch {
	case ok && (selector.Matches(of) || !okOld || !selector.Matches(ofOld)):
		return labelsText("the object", selector, of)
	case okOld:
		return labelsText("the old object", selector, ofOld)
	}
	return "what is asked about has no labels, so no selector matches"
}

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

// labelsText compares labels with the first requirement of a selector that they do not meet. If they meet all, it lists all.
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

// explainRules also knows of versions that an API server converts to, but this engine cannot.
func explainRules(h *inprocess.Hook, a admission.Attributes, o inprocess.Interfaces) (Predicate, schema.GroupVersionKind, schema.GroupVersionResource) {
	kind, resource, detail, err := matchRules(h, a, o.GetEquivalentResourceMapper())
	e := Predicate{Reason: ByRules, Result: Holds, Detail: detail}
	switch {
	case err != nil:
		e.Result, e.Detail = Errs, err.Error()
		return e, schema.GroupVersionKind{}, schema.GroupVersionResource{}
	case detail != "":
		return e, kind, resource
	}
	if *h.GetMatchPolicy() == admissionregistrationv1.Equivalent && a.GetSubresource() == "" {
		for i, rule := range h.GetRules() {
			for _, other := range o.NotConverted(a.GetResource(), a.GetKind()) {
				as := withResource{a, other}
				if m := (rules.Matcher{Rule: rule, Attr: as}); m.Matches() {
					e.Detail = fmt.Sprintf("rules[%d] is for the equivalent %s", i, describe(as))
					return e, other.GroupVersion().WithKind(a.GetKind().Kind), other
				}
			}
		}
	}
	e.Result, e.Detail = Fails, mismatches(h.GetRules(), a)
	return e, schema.GroupVersionKind{}, schema.GroupVersionResource{}
}

// mismatches says what keeps each rule from being for a request.
func mismatches(all []admissionregistrationv1.RuleWithOperations, a admission.Attributes) string {
	detail := "no rule is for " + describe(a)
	for i, rule := range all {
		if i == 4 && len(all) > 5 {
			return fmt.Sprintf("%s; and %d more", detail, len(all)-i)
		}
		sign := ";"
		if i == 0 {
			sign = ":"
		}
		detail += fmt.Sprintf("%s rules[%d] has %s", sign, i, mismatch(rule, a))
	}
	return detail
}

// mismatch names the parts of a rule that are not for a request.
func mismatch(rule admissionregistrationv1.RuleWithOperations, a admission.Attributes) string {
	star := []string{"*"}
	var parts []string
	differs := func(part string, values any, edit func(*admissionregistrationv1.RuleWithOperations)) {
		every := admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{"*"},
			Rule: admissionregistrationv1.Rule{APIGroups: star, APIVersions: star, Resources: []string{"*/*"}}}
		edit(&every)
		if m := (rules.Matcher{Rule: every, Attr: a}); !m.Matches() {
			parts = append(parts, fmt.Sprintf("%s %q", part, values))
		}
	}
	differs("operations", rule.Operations, func(r *admissionregistrationv1.RuleWithOperations) { r.Operations = rule.Operations })
	differs("apiGroups", rule.APIGroups, func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = rule.APIGroups })
	differs("apiVersions", rule.APIVersions, func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = rule.APIVersions })
	differs("resources", rule.Resources, func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = rule.Resources })
	if rule.Scope != nil {
		differs("scope", *rule.Scope, func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = rule.Scope })
	}
	return strings.Join(parts, ", ")
}

// whoseLabels says where those for a namespaceSelector are from. What is made or changed has its own if its
// resource is called namespaces, of whatever group (GetNamespaceLabels).
func whoseLabels(a admission.Attributes) string {
	changed := a.GetOperation() == admission.Create || a.GetOperation() == admission.Update
	if r := a.GetResource(); r.Resource == "namespaces" && r.Group != "" && a.GetSubresource() == "" && changed {
		return "the object, being one of " + r.GroupResource().String() + ","
	}
	return fmt.Sprintf("namespace %q", a.GetNamespace())
}
