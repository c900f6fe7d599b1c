// SPDX-License-Identifier: Apache-2.0

// Package policy evaluates admission policies, which consist of CEL expressions, with the API server's own code. Its
// plugins do the same as the API server's plugins MutatingAdmissionPolicy and ValidatingAdmissionPolicy, but they have a
// fixed list of policies, and record each evaluation.
package policy

import (
	"cmp"
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// The names of the API server's plugins.
const (
	MutatingPlugin   = mutating.PluginName
	ValidatingPlugin = validating.PluginName
)

// Settings has the dependencies of both plugins.
type Settings struct {
	Params     *Params
	Authorizer authorizer.Authorizer
	Matcher    *matching.Matcher
	// Converter returns the converter for the fields of a kind, which ApplyConfiguration mutations need.
	Converter func(schema.GroupVersionKind) (managedfields.TypeConverter, error)
}

// exempt reports whether the API server skips policies for a resource. It skips them for policies, for bindings, and for
// reviews, which are not stored (exclusion.Excluded).
func exempt(r schema.GroupResource) bool {
	switch r.Group {
	case admissionregistrationv1.GroupName:
		return slices.Contains([]string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, r.Resource)
	case "authentication.k8s.io":
		return slices.Contains([]string{"selfsubjectreviews", "tokenreviews"}, r.Resource)
	case "authorization.k8s.io":
		return slices.Contains([]string{"localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"}, r.Resource)
	}
	return false
}

// Mutating is an admission plugin that applies MutatingAdmissionPolicies.
type Mutating struct {
	*admission.Handler
	Pairs      []Pair // in the order of the evaluation
	hooks      []mutating.PolicyHook
	dispatcher generic.Dispatcher[mutating.PolicyHook]
}

// NewMutating returns a plugin for policies with their bindings. The caller must have set the defaults of both. The plugin
// evaluates them in the order of their names. The order in an API server is not fixed.
func NewMutating(policies []*mutating.Policy, bindings []*mutating.PolicyBinding, s Settings) *Mutating {
	p := &Mutating{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Connect)}
	p.dispatcher = mutating.NewDispatcher(s.Authorizer, s.Matcher, converters{s.Converter})
	compiled := map[*mutating.Policy]mutating.PolicyEvaluator{}
	for _, policy := range policies {
		compiled[policy] = compileMutating(policy)
	}
	for _, of := range pairs(policies, bindings, func(b *mutating.PolicyBinding) string { return b.Spec.PolicyName }) {
		pair := Pair{Policy: of.policy.Name, Binding: of.binding.Name, Mutating: true, matcher: generic.NewPolicyMatcher(s.Matcher),
			definition: mutating.NewMutatingAdmissionPolicyAccessor(of.policy), binding: mutating.NewMutatingAdmissionPolicyBindingAccessor(of.binding)}
		pair.params, pair.scope, pair.misconfigured = s.Params.informer(of.policy.Spec.ParamKind, true)
		p.Pairs = append(p.Pairs, pair)
		p.hooks = append(p.hooks, mutating.PolicyHook{Policy: of.policy, Bindings: []*mutating.PolicyBinding{of.binding}, ParamInformer: pair.params,
			ParamScope: pair.scope, ConfigurationError: pair.misconfigured, Evaluator: recordMutations(pair, compiled[of.policy])})
	}
	return p
}

// Admit applies the policies to the object of a request.
func (p *Mutating) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if exempt(a.GetResource().GroupResource()) {
		return nil
	}
	beginRound(ctx)
	return p.dispatcher.Dispatch(ctx, a, o, p.hooks)
}

// Validating is an admission plugin that evaluates ValidatingAdmissionPolicies.
type Validating struct {
	*admission.Handler
	Pairs      []Pair // in the order of the evaluation
	hooks      []validating.PolicyHook
	dispatcher generic.Dispatcher[validating.PolicyHook]
}

// NewValidating returns a plugin for the bindings of the policies, like NewMutating.
func NewValidating(policies []*validating.Policy, bindings []*validating.PolicyBinding, s Settings) *Validating {
	p := &Validating{Handler: admission.NewHandler(admission.Connect, admission.Create, admission.Delete, admission.Update)}
	matcher := generic.NewPolicyMatcher(s.Matcher)
	p.dispatcher = validating.NewDispatcher(s.Authorizer, matcher)
	compiled := map[*validating.Policy]validating.Validator{}
	for _, policy := range policies {
		compiled[policy] = compileValidating(policy)
	}
	for _, of := range pairs(policies, bindings, func(b *validating.PolicyBinding) string { return b.Spec.PolicyName }) {
		pair := Pair{Policy: of.policy.Name, Binding: of.binding.Name, matcher: matcher,
			definition: validating.NewValidatingAdmissionPolicyAccessor(of.policy), binding: validating.NewValidatingAdmissionPolicyBindingAccessor(of.binding)}
		pair.params, pair.scope, pair.misconfigured = s.Params.informer(of.policy.Spec.ParamKind, false)
		p.Pairs = append(p.Pairs, pair)
		p.hooks = append(p.hooks, validating.PolicyHook{Policy: of.policy, Bindings: []*validating.PolicyBinding{of.binding}, ParamInformer: pair.params,
			ParamScope: pair.scope, ConfigurationError: pair.misconfigured, Evaluator: recordValidations(compiled[of.policy], pair, of.binding.Spec.ValidationActions)})
	}
	return p
}

// Validate evaluates the policies for a request.
func (p *Validating) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if exempt(a.GetResource().GroupResource()) {
		return nil
	}
	return p.dispatcher.Dispatch(ctx, a, o, p.hooks)
}

// A bound is a policy with one of its bindings.
type bound[P, B any] struct {
	policy  P
	binding B
}

// pairs returns each policy with each of its bindings, sorted by their names.
func pairs[P, B interface{ GetName() string }](policies []P, bindings []B, policyOf func(B) string) (all []bound[P, B]) {
	byName := func(a, b interface{ GetName() string }) int { return cmp.Compare(a.GetName(), b.GetName()) }
	for _, p := range slices.SortedFunc(slices.Values(policies), func(a, b P) int { return byName(a, b) }) {
		for _, b := range slices.SortedFunc(slices.Values(bindings), func(a, b B) int { return byName(a, b) }) {
			if policyOf(b) == p.GetName() {
				all = append(all, bound[P, B]{p, b})
			}
		}
	}
	return all
}

// converters implements patch.TypeConverterManager.
type converters struct {
	of func(schema.GroupVersionKind) (managedfields.TypeConverter, error)
}

// GetTypeConverter returns nil if the fields of the kind are unknown.
func (c converters) GetTypeConverter(kind schema.GroupVersionKind) managedfields.TypeConverter {
	converter, err := c.of(kind)
	if err != nil {
		return nil
	}
	return converter
}

// Run does nothing, because the converters do not change.
func (converters) Run(context.Context) {}
