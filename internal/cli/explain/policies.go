// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/rulematch"
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
	// params reads the objects of a kind in a namespace, which may be parameters. An empty namespace means all. It is nil
	// without a cluster.
	params func(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error)
	asked  map[paramsOf]error // what params was asked for, with its error
	given  []*objects.Object  // objects of other kinds in files, which may be parameters
}

// paramsOf identifies the parameters that were read.
type paramsOf struct {
	kind      schema.GroupVersionKind
	namespace string
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
	if err := json.Unmarshal(o.JSON, one); err != nil {
		return nil, err
	}
	return replace(all, one), nil
}

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
	// selectsNamespaces means that the policy or the binding has a namespaceSelector.
	selectsNamespaces bool
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
			of.expressions += one.Expression + "\n"
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
	p := pair{policy: name, mutating: mutating, selectsNamespaces: selectsNamespaces(of)}
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
	return p
}

func selectsNamespaces(r *admissionregistrationv1.MatchResources) bool {
	return r != nil && r.NamespaceSelector != nil && len(r.NamespaceSelector.MatchLabels)+len(r.NamespaceSelector.MatchExpressions) > 0
}

// params returns the parameters that the pair has for a request in a namespace. It reports false if it has none.
func (p pair) params(namespace string) (paramsOf, bool) {
	if p.kind == nil || p.ref == nil {
		return paramsOf{}, false
	}
	return paramsOf{*p.kind, cmp.Or(p.ref.Namespace, namespace)}, true
}

// readParams reads the parameters for requests in these namespaces. An empty namespace is that of objects without one.
func (p *policies) readParams(ctx context.Context, namespaces []string) error {
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
	found, err := p.params(ctx, of.kind, of.namespace)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.asked[of] = err
	for _, u := range found {
		if !slices.ContainsFunc(p.given, func(o *objects.Object) bool {
			return o.GVK == of.kind && o.Name == u.GetName() && o.Namespace == u.GetNamespace()
		}) {
			p.Params = append(p.Params, u)
		}
	}
	return nil
}

// may returns the names of the mutating policies that may change the object of a request, although they cannot be
// evaluated. It ignores the versions in their rules, because policies match equivalent versions too.
func (p *policies) may(a *knownRequest) []string {
	if a.Operation == admissionv1.Delete {
		return nil // there is nothing to change
	}
	var names []string
	for _, policy := range p.Mutating {
		bound := slices.ContainsFunc(p.MutatingBindings, func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == policy.Name
		})
		if bound && p.broken == nil || !bound && !p.unbound || policy.Spec.MatchConstraints == nil {
			continue
		}
		if slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(named admissionregistrationv1.NamedRuleWithOperations) bool {
			rule := named.RuleWithOperations
			rule.APIVersions = []string{"*"}
			return rulematch.Matches(rule, a.ruleRequest())
		}) {
			names = append(names, policy.Name)
		}
	}
	slices.Sort(names)
	return names
}

// readPolicies reads the policies and their bindings in the newest version that the cluster serves.
func (l *liveCluster) readPolicies(ctx context.Context, w *Facts) error {
	w.policies.params = l.params
	var hidden []string // resources that the user may not list
	for _, resource := range []string{"mutatingadmissionpolicies", "validatingadmissionpolicies"} {
		version, found, err := l.newest(ctx, resource)
		switch {
		case apierrors.IsForbidden(err):
			hidden = append(hidden, resource)
			continue
		case err != nil:
			return err
		case version == "":
			continue // no version is served, so there are none
		}
		of := strings.TrimSuffix(resource, "policies") + "policybindings"
		bindings, err := cluster.List(ctx, l.config, schema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: version, Resource: of})
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			w.policies.unbound = true
			hidden = append(hidden, of)
		case err != nil:
			return err
		}
		if err := w.policies.add(append(found, bindings...)); err != nil {
			return err
		}
	}
	if w.policies.known = len(hidden) == 0; !w.policies.known {
		w.notes = append(w.notes, fmt.Sprintf("admission policies are not considered: you may not list %s", list(hidden, "and")))
	}
	if err := w.policies.check(); err != nil {
		w.policies.broken = err
		w.notes = append(w.notes, fmt.Sprintf("admission policies cannot be evaluated: %v", err))
	}
	return nil
}

// newest lists the objects of a resource in the newest version that the cluster serves. The version is empty if it serves
// none.
func (l *liveCluster) newest(ctx context.Context, resource string) (string, []*objects.Object, error) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		all, err := cluster.List(ctx, l.config, schema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: version, Resource: resource})
		if !apierrors.IsNotFound(err) {
			return version, all, err
		}
	}
	return "", nil, nil
}

// params reads the objects of a kind in a namespace.
func (l *liveCluster) params(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	resource, namespaced, err := l.resource(kind)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(l.config)
	if err != nil {
		return nil, err
	}
	var of dynamic.ResourceInterface = client.Resource(resource)
	if namespaced && namespace != "" {
		of = client.Resource(resource).Namespace(namespace)
	}
	var all []*unstructured.Unstructured
	err = cluster.Pages(ctx, of, metav1.ListOptions{}, func(page []unstructured.Unstructured) error {
		for i := range page {
			all = append(all, &page[i])
		}
		return nil
	})
	return all, err
}
