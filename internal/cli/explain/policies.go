// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/chain"
)

// policies are the admission policies that explain knows.
type policies struct {
	chain.Policies
	// known means that the lists of policies are complete. unbound means that bindings may be missing: a policy without
	// one may have an effect.
	known, unbound bool
	// broken is the reason why the policies cannot be evaluated, or nil.
	broken error
	// params reads the objects that may be parameters. It is nil without a cluster.
	params func(context.Context, paramsOf) ([]*unstructured.Unstructured, error)
	asked  map[paramsOf]error // what params was asked for, with its error
	given  []*objects.Object  // objects of other kinds in files, which may be parameters
}

// paramsOf identifies the parameters that were read.
type paramsOf struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string // empty for all objects in the namespace
}

func isPolicy(o *objects.Object) bool {
	return o.GVK.Group == admissionregistrationv1.GroupName && strings.Contains(o.GVK.Kind, "AdmissionPolicy")
}

// hasPolicy reports whether a policy or a binding is among the objects.
func hasPolicy(all []*objects.Object) bool { return slices.ContainsFunc(all, isPolicy) }

// add adds the policies and the bindings among the objects. They replace those with the same names. All API versions have
// the same fields.
func (p *policies) add(all []*objects.Object) error {
	for _, o := range all {
		if isPolicy(o) && !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, o.GVK.Version) {
			return problem.New("%s: %s: there is no version %s of %s", o.Where(), o, o.GVK.Version, o.GVK.Kind)
		}
		if !isPolicy(o) {
			p.given = append(p.given, o)
			continue
		}
		var err error
		switch o.GVK.Kind {
		case "MutatingAdmissionPolicy":
			p.Mutating, err = withDecoded(p.Mutating, o)
		case "MutatingAdmissionPolicyBinding":
			p.MutatingBindings, err = withDecoded(p.MutatingBindings, o)
		case "ValidatingAdmissionPolicy":
			p.Validating, err = withDecoded(p.Validating, o)
		case "ValidatingAdmissionPolicyBinding":
			p.ValidatingBindings, err = withDecoded(p.ValidatingBindings, o)
		}
		if err != nil {
			return problem.New("%s: %s: %w", o.Where(), o, err)
		}
	}
	return nil
}

// withDecoded decodes an object and adds it to a list.
func withDecoded[T any, P interface {
	*T
	metav1.Object
}](all []P, o *objects.Object) ([]P, error) {
	one := P(new(T))
	unknown, err := kjson.UnmarshalStrict(o.JSON, one)
	if err == nil && o.File != "" { // a newer API server may have fields that this program does not know
		err = errors.Join(unknown...)
	}
	if err != nil {
		return nil, err
	}
	return replace(all, one), nil
}

// live reports whether the policies of a cluster were read.
func (p *policies) live() bool { return p.params != nil }

// check returns the reason why an API server would reject the policies.
func (p *policies) check() error {
	engine, err := chain.New(chain.Webhooks{}, chain.Options{Policies: p.Policies})
	if err == nil {
		err = engine.Close()
	}
	return err
}

// usable returns the policies that can be evaluated, with the parameters that were read.
func (p *policies) usable() chain.Policies {
	if p.broken != nil {
		return chain.Policies{}
	}
	return p.Policies
}

// A pair is a policy with one of its bindings.
type pair struct {
	policy, binding string
	mutating        bool
	kind            *schema.GroupVersionKind // of the parameters
	ref             *admissionregistrationv1.ParamRef
	expressions     string
	// selectsNamespaces means that the policy or the binding has a namespaceSelector for other labels than the name.
	selectsNamespaces bool
	// selectsObjects means that the policy or the binding has an objectSelector.
	selectsObjects bool
	rules          []admissionregistrationv1.NamedRuleWithOperations // of the policy
	equivalent     bool
}

// pairs returns each policy with each of its bindings.
func (p *policies) pairs() (all []pair) {
	for _, m := range p.Mutating {
		of := newPair(m.Name, true, m.Spec.ParamKind, m.Spec.MatchConstraints, m.Spec.Variables, m.Spec.MatchConditions)
		for _, one := range m.Spec.Mutations {
			if one.JSONPatch != nil {
				of.expressions += one.JSONPatch.Expression + "\n"
			}
			if one.ApplyConfiguration != nil {
				of.expressions += one.ApplyConfiguration.Expression + "\n"
			}
		}
		for _, b := range p.MutatingBindings {
			if b.Spec.PolicyName == m.Name {
				all = append(all, of.bind(b.Name, b.Spec.ParamRef, b.Spec.MatchResources))
			}
		}
	}
	for _, v := range p.Validating {
		of := newPair(v.Name, false, v.Spec.ParamKind, v.Spec.MatchConstraints, v.Spec.Variables, v.Spec.MatchConditions)
		for _, one := range v.Spec.Validations {
			of.expressions += one.Expression + "\n" + one.MessageExpression + "\n"
		}
		for _, one := range v.Spec.AuditAnnotations {
			of.expressions += one.ValueExpression + "\n"
		}
		for _, b := range p.ValidatingBindings {
			if b.Spec.PolicyName == v.Name {
				all = append(all, of.bind(b.Name, b.Spec.ParamRef, b.Spec.MatchResources))
			}
		}
	}
	return all
}

func newPair(name string, mutating bool, params *admissionregistrationv1.ParamKind, of *admissionregistrationv1.MatchResources, variables []admissionregistrationv1.Variable, conditions []admissionregistrationv1.MatchCondition) pair {
	p := pair{policy: name, mutating: mutating, selectsNamespaces: selectsNamespaces(of), selectsObjects: selectsObjects(of)}
	if of != nil {
		p.rules, p.equivalent = of.ResourceRules, isEquivalent(of.MatchPolicy)
	}
	if params != nil {
		kind := schema.FromAPIVersionAndKind(params.APIVersion, params.Kind)
		p.kind = &kind
	}
	for _, v := range variables {
		p.expressions += v.Expression + "\n"
	}
	for _, c := range conditions {
		p.expressions += c.Expression + "\n"
	}
	return p
}

// bind returns the policy with a binding.
func (p pair) bind(name string, ref *admissionregistrationv1.ParamRef, of *admissionregistrationv1.MatchResources) pair {
	p.binding, p.ref, p.selectsNamespaces = name, ref, p.selectsNamespaces || selectsNamespaces(of)
	p.selectsObjects = p.selectsObjects || selectsObjects(of)
	return p
}

func selectsNamespaces(r *admissionregistrationv1.MatchResources) bool {
	if r == nil || r.NamespaceSelector == nil {
		return false
	}
	for key := range r.NamespaceSelector.MatchLabels {
		if key != corev1.LabelMetadataName {
			return true
		}
	}
	return slices.ContainsFunc(r.NamespaceSelector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return e.Key != corev1.LabelMetadataName })
}

func selectsObjects(r *admissionregistrationv1.MatchResources) bool {
	return r != nil && r.ObjectSelector != nil && len(r.ObjectSelector.MatchLabels)+len(r.ObjectSelector.MatchExpressions) > 0
}

// params returns where the parameters of the pair are for a request in a namespace. It reports false if it has none.
func (p pair) params(namespace string) (paramsOf, bool) {
	if p.kind == nil || p.ref == nil {
		return paramsOf{}, false
	}
	return paramsOf{*p.kind, cmp.Or(p.ref.Namespace, namespace), p.ref.Name}, true
}

// readParams reads the parameters for requests in these namespaces. The empty namespace stands for cluster-scoped objects.
// A parameter in a file without a namespace gets the namespace own, if objects of its kind are in namespaces.
func (p *policies) readParams(ctx context.Context, namespaces []string, own string, namespaced func(schema.GroupVersionKind) bool) error {
	pairs := p.pairs()
	if p.asked == nil {
		p.asked = map[paramsOf]error{}
		for _, o := range p.given {
			if !slices.ContainsFunc(pairs, func(of pair) bool { return of.kind != nil && *of.kind == o.GVK }) {
				continue
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(o.JSON); err != nil {
				return problem.New("%s: %s: %w", o.Where(), o, err)
			}
			if u.GetNamespace() == "" && namespaced(o.GVK) {
				u.SetNamespace(own)
			}
			p.Params = append(p.Params, u)
		}
	}
	for _, of := range pairs {
		for _, namespace := range namespaces {
			if params, ok := of.params(namespace); ok {
				if err := p.readOf(ctx, params); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *policies) readOf(ctx context.Context, of paramsOf) error {
	if _, done := p.asked[of]; done || p.params == nil {
		return nil
	}
	found, err := p.params(ctx, of)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.asked[of] = err
	for _, u := range found {
		if !slices.ContainsFunc(p.Params, func(known runtime.Object) bool { // a file replaces it, or it was read before
			k := known.(*unstructured.Unstructured)
			return k.GroupVersionKind() == of.kind && k.GetName() == u.GetName() && k.GetNamespace() == u.GetNamespace()
		}) {
			p.Params = append(p.Params, u)
		}
	}
	return nil
}

// mayMutate returns the names of the mutating policies that may change the object of a request, although they cannot be
// evaluated: their bindings are unknown, or one of the policies cannot be read.
func (t *explainer) mayMutate() (names []string) {
	p := &t.facts.policies
	if t.req.Operation == admissionv1.Delete {
		return nil // there is nothing to change
	}
	candidates := p.pairs()
	if p.broken == nil {
		candidates = nil
	}
	if p.unbound {
		candidates = append(candidates, p.withoutBinding()...)
	}
	for _, of := range candidates {
		if of.mutating && t.matchesSome(of.rules) && !slices.Contains(names, of.policy) {
			names = append(names, of.policy)
		}
	}
	slices.Sort(names)
	return names
}

// withoutBinding returns the policies that have no binding.
func (p *policies) withoutBinding() (all []pair) {
	bound := p.pairs()
	has := func(mutating bool, name string) bool {
		return slices.ContainsFunc(bound, func(of pair) bool { return of.mutating == mutating && of.policy == name })
	}
	for _, m := range p.Mutating {
		if !has(true, m.Name) {
			all = append(all, newPair(m.Name, true, m.Spec.ParamKind, m.Spec.MatchConstraints, nil, nil))
		}
	}
	for _, v := range p.Validating {
		if !has(false, v.Name) {
			all = append(all, newPair(v.Name, false, v.Spec.ParamKind, v.Spec.MatchConstraints, nil, nil))
		}
	}
	return all
}

// has reports whether a parameter is in a file.
func (p *policies) has(params paramsOf, namespaced bool) bool {
	return slices.ContainsFunc(p.Params, func(object runtime.Object) bool {
		u := object.(*unstructured.Unstructured)
		return u.GroupVersionKind() == params.kind && u.GetName() == params.name && (!namespaced || u.GetNamespace() == params.namespace)
	})
}

// String describes one parameter: "ConfigMap shop/limits".
func (p paramsOf) String() string {
	return p.kind.Kind + " " + strings.TrimPrefix(p.namespace+"/"+p.name, "/")
}

// namespacedParam reports whether the objects of a kind of parameters are in namespaces.
func (w *Facts) namespacedParam(kind schema.GroupVersionKind) bool {
	d := w.definition(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind
	})
	if d != nil {
		return d.Spec.Scope == apiextensionsv1.NamespaceScoped
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return !k8svalidation.ClusterScoped(resource.GroupResource())
}

// dropOlder drops mutating policies from files that the chosen version of Kubernetes does not have.
func (p *policies) dropOlder(w *Facts) {
	_, text, _ := strings.Cut(w.Kubernetes, ".")
	minor, err := strconv.Atoi(text)
	if err != nil || w.Source == "cluster" || len(p.Mutating) == 0 || minor >= 36 {
		return
	}
	p.Mutating, p.MutatingBindings = nil, nil
	w.notes = append(w.notes, fmt.Sprintf("Kubernetes %s has no MutatingAdmissionPolicy in v1, so none is evaluated: it is stable since 1.36", w.Kubernetes))
}
