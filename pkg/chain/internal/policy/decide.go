// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// A Pair is a policy with one of its bindings.
type Pair struct {
	Policy, Binding string
	Mutating        bool

	matcher    generic.PolicyMatcher
	definition generic.PolicyAccessor
	binding    generic.BindingAccessor
	// params and scope are those of the parameters. misconfigured is the error for an unknown kind of parameters.
	params        informers.GenericInformer
	scope         meta.RESTScope
	misconfigured error
}

// Ignores reports whether the failurePolicy is Ignore.
func (p Pair) Ignores() bool {
	return ptr.Deref(p.definition.GetFailurePolicy(), admissionregistrationv1.Fail) == admissionregistrationv1.Ignore
}

// HasParams reports whether a matching policy is evaluated for at least one parameter, or has no parameters. The error is
// that of the API server, which then applies the failurePolicy.
func (p Pair) HasParams(a admission.Attributes) (bool, error) {
	if p.misconfigured != nil {
		return false, fmt.Errorf("failed to configure policy: %w", p.misconfigured)
	}
	ref := p.binding.GetParamRef()
	if p.definition.GetParamKind() == nil || ref == nil {
		return true, nil
	}
	number, err := p.countParams(ref, a.GetNamespace())
	if err == nil && number == 0 && ptr.Deref(ref.ParameterNotFoundAction, "") == admissionregistrationv1.DenyAction {
		err = errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	if err != nil {
		return false, fmt.Errorf("failed to configure binding: %w", err)
	}
	return number > 0, nil
}

// countParams returns the number of parameters for a request in a namespace, as generic.CollectParams finds them. That
// function has other arguments in each version of the library.
func (p Pair) countParams(ref *admissionregistrationv1.ParamRef, namespace string) (int, error) {
	var of cache.GenericNamespaceLister = p.params.Lister()
	namespaced := p.scope.Name() == meta.RESTScopeNameNamespace
	switch in := cmp.Or(ref.Namespace, namespace); {
	case namespaced && in == "":
		return 0, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	case namespaced:
		of = p.params.Lister().ByNamespace(in)
	case ref.Namespace != "":
		return 0, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	}
	if ref.Name != "" {
		_, err := of.Get(ref.Name)
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 1, err
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return 0, err
	}
	found, err := of.List(selector)
	return len(found), err
}

// A Mismatch is the part of a policy or a binding that excludes a request.
type Mismatch struct {
	// Field is namespaceSelector, objectSelector, excludeResourceRules or resourceRules. It is empty for a resource for
	// which no policy is evaluated.
	Field string
	// InBinding means that the field is in the binding, not in the policy.
	InBinding bool
	// Selector is the value of a selector.
	Selector labels.Selector
}

// Mismatch returns what excludes a request, or nil if matchConstraints and matchResources match. On an error, the API
// server applies the failurePolicy.
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
		ok, err := matches(of)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", []string{"failed to configure policy", "failed to configure binding"}[i], err)
		}
		if ok {
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

// constraints wraps a policy and replaces its matchConstraints.
type constraints struct {
	generic.PolicyAccessor
	resources *admissionregistrationv1.MatchResources
}

// GetMatchConstraints returns the other matchConstraints.
func (c constraints) GetMatchConstraints() *admissionregistrationv1.MatchResources {
	return c.resources
}
