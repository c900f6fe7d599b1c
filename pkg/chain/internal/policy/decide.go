// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/utils/ptr"
)

// A Pair is a policy with one of its bindings.
type Pair struct {
	Policy, Binding string
	Mutating        bool

	matcher    generic.PolicyMatcher
	definition generic.PolicyAccessor
	binding    generic.BindingAccessor
}

func (p Pair) ignores() bool {
	return ptr.Deref(p.definition.GetFailurePolicy(), admissionregistrationv1.Fail) == admissionregistrationv1.Ignore
}

// A Mismatch is the part of a policy or a binding that excludes a request.
type Mismatch struct {
	// Field is namespaceSelector, objectSelector, excludeResourceRules or resourceRules. It is empty for a resource for
	// which no policy is evaluated.
	Field string
	// InBinding means that the field is one of the binding.
	InBinding bool
	// Selector is the value of a selector.
	Selector labels.Selector
}

// Mismatch returns what excludes a request, or nil if the policy is evaluated as far as matchConstraints and
// matchResources decide. The error is that of the API server, which applies the failurePolicy.
func (p Pair) Mismatch(a admission.Attributes, o admission.ObjectInterfaces) (*Mismatch, error) {
	if exempt(a.GetResource().GroupResource()) {
		return &Mismatch{}, nil
	}
	matches := func(r *admissionregistrationv1.MatchResources) (bool, error) {
		matches, _, _, err := p.matcher.DefinitionMatches(a, o, constraints{p.definition, r})
		return matches, err
	}
	for i, of := range []*admissionregistrationv1.MatchResources{p.definition.GetMatchConstraints(), p.binding.GetMatchResources()} {
		if of == nil {
			continue
		}
		if ok, err := matches(of); ok || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		m, err := mismatch(of, matches)
		if err != nil {
			return nil, err
		}
		m.InBinding = i == 1
		return m, nil
	}
	return nil, nil
}

// mismatch returns the first field that does not match. It asks the API server's matcher about each field alone, in the
// matcher's order.
func mismatch(of *admissionregistrationv1.MatchResources, matches func(*admissionregistrationv1.MatchResources) (bool, error)) (*Mismatch, error) {
	every := admissionregistrationv1.MatchResources{MatchPolicy: of.MatchPolicy, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}}
	for _, field := range []struct {
		name     string
		set      func(*admissionregistrationv1.MatchResources)
		selector *metav1.LabelSelector
	}{
		{"namespaceSelector", func(r *admissionregistrationv1.MatchResources) { r.NamespaceSelector = of.NamespaceSelector }, of.NamespaceSelector},
		{"objectSelector", func(r *admissionregistrationv1.MatchResources) { r.ObjectSelector = of.ObjectSelector }, of.ObjectSelector},
		{"excludeResourceRules", func(r *admissionregistrationv1.MatchResources) { r.ExcludeResourceRules = of.ExcludeResourceRules }, nil},
		{"resourceRules", func(r *admissionregistrationv1.MatchResources) { r.ResourceRules = of.ResourceRules }, nil},
	} {
		alone := every
		field.set(&alone)
		if ok, err := matches(&alone); ok || err != nil {
			continue // an error of one field does not matter if another excludes the request
		}
		m := &Mismatch{Field: field.name}
		if field.selector != nil {
			m.Selector, _ = metav1.LabelSelectorAsSelector(field.selector)
		}
		return m, nil
	}
	return nil, fmt.Errorf("the policy does not match, but each of its fields does")
}

// constraints are a policy with other matchConstraints.
type constraints struct {
	generic.PolicyAccessor
	resources *admissionregistrationv1.MatchResources
}

// GetMatchConstraints returns the other matchConstraints.
func (c constraints) GetMatchConstraints() *admissionregistrationv1.MatchResources {
	return c.resources
}
