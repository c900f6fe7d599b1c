// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/chain/internal/configuration"
	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/policy"
)

// Policies are admission policies, whose expressions are written in CEL. The API server evaluates them itself: mutating
// policies before it calls mutating webhooks, and validating policies before it calls validating webhooks. A policy
// without a binding does nothing.
//
// The engine evaluates policies in the order of their names, because the order in an API server is not fixed. Like the
// API server, it evaluates no policy for requests to policies and bindings.
type Policies struct {
	Mutating           []*admissionregistrationv1.MutatingAdmissionPolicy
	MutatingBindings   []*admissionregistrationv1.MutatingAdmissionPolicyBinding
	Validating         []*admissionregistrationv1.ValidatingAdmissionPolicy
	ValidatingBindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Params are the parameter objects. Each must have the apiVersion and the kind of its policy's paramKind, and the
	// namespace that it has in the cluster. A custom resource must be an *unstructured.Unstructured, and its definition
	// must be in Options.CRDs.
	Params []runtime.Object
}

// An Evaluation is one evaluation of an admission policy for one of its bindings and a parameter.
type Evaluation struct {
	Policy, Binding string
	Mutating        bool
	// Round is 0, or 1 for a reinvocation of a mutating policy.
	Round int
	// Param is the namespace and the name of the parameter, such as "shop/limits", or empty.
	Param string
	// Effect is Allowed, Denied, Failed, FailedOpen or Excluded. A policy whose binding only warns or audits has the
	// effect Allowed.
	Effect Effect
	// Mutated means that the policy changed the object.
	Mutated bool
	// Failures are the messages of failed validations, and the errors of expressions and parameters.
	Failures []string
	// Actions are the validationActions of the binding of a validating policy.
	Actions []admissionregistrationv1.ValidationAction
	// Condition is the name of the matchCondition that is false if Effect is Excluded. It is empty if a condition cannot
	// be evaluated and failurePolicy is Ignore.
	Condition string
}

// Excluded means that a matchCondition of a policy is false, so the policy has no effect.
const Excluded Effect = "Excluded"

// ByParam means that the parameter of a policy does not exist, and parameterNotFoundAction is Allow.
const ByParam Reason = "Param"

// withDefaults returns a copy of the policies with the API server's defaults. It returns an error for each field for which
// the API server would reject a policy or a binding, and for each expression that does not compile.
func (p Policies) withDefaults() (Policies, error) {
	all := Policies{Params: p.Params}
	var errs []error
	if slices.Contains(p.Mutating, nil) || slices.Contains(p.Validating, nil) || slices.Contains(p.MutatingBindings, nil) || slices.Contains(p.ValidatingBindings, nil) || slices.Contains(p.Params, nil) {
		return all, errors.New("Policies has a nil element")
	}
	reject := func(kind, name string, fields field.ErrorList, expressions error) {
		for _, err := range fields {
			errs = append(errs, fmt.Errorf("%s %s: %w", kind, name, err))
		}
		if len(fields) == 0 && expressions != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", kind, name, expressions))
		}
	}
	for _, m := range p.Mutating {
		m = m.DeepCopy()
		reject("MutatingAdmissionPolicy", m.Name, configuration.MutatingPolicy(m), policy.CheckMutating(m))
		all.Mutating = append(all.Mutating, m)
	}
	for _, v := range p.Validating {
		v = v.DeepCopy()
		reject("ValidatingAdmissionPolicy", v.Name, configuration.ValidatingPolicy(v), policy.CheckValidating(v))
		all.Validating = append(all.Validating, v)
	}
	for _, b := range p.MutatingBindings {
		b = b.DeepCopy()
		reject("MutatingAdmissionPolicyBinding", b.Name, configuration.MutatingBinding(b), nil)
		all.MutatingBindings = append(all.MutatingBindings, b)
	}
	for _, b := range p.ValidatingBindings {
		b = b.DeepCopy()
		reject("ValidatingAdmissionPolicyBinding", b.Name, configuration.ValidatingBinding(b), nil)
		all.ValidatingBindings = append(all.ValidatingBindings, b)
	}
	return all, errors.Join(append(errs, all.duplicates())...)
}

// duplicates returns an error for two policies or two bindings of one type with the same name.
func (p Policies) duplicates() error {
	seen := map[string]bool{}
	twice := func(kind, name string) error {
		key := kind + " " + name
		defer func() { seen[key] = true }()
		if seen[key] {
			return fmt.Errorf("there are two of %s", key)
		}
		return nil
	}
	var errs []error
	for _, m := range p.Mutating {
		errs = append(errs, twice("MutatingAdmissionPolicy", m.Name))
	}
	for _, v := range p.Validating {
		errs = append(errs, twice("ValidatingAdmissionPolicy", v.Name))
	}
	for _, b := range p.MutatingBindings {
		errs = append(errs, twice("MutatingAdmissionPolicyBinding", b.Name))
	}
	for _, b := range p.ValidatingBindings {
		errs = append(errs, twice("ValidatingAdmissionPolicyBinding", b.Name))
	}
	return errors.Join(errs...)
}

// addPolicies creates the plugins of the policies.
func (e *engine) addPolicies(client kubernetes.Interface, factory informers.SharedInformerFactory) error {
	all, err := e.options.Policies.withDefaults()
	if err != nil {
		return err
	}
	settings := policy.Settings{
		Params: policy.NewParams(e.objects.Scope), Authorizer: e.options.Authorizer, Converter: e.managed.Converter,
		Matcher: matching.NewMatcher(factory.Core().V1().Namespaces().Lister(), client),
	}
	for i, object := range all.Params {
		kind, param, err := e.objects.Param(object)
		if err != nil {
			return fmt.Errorf("Params[%d]: %w", i, err)
		}
		if err := settings.Params.Add(kind, param); err != nil {
			return fmt.Errorf("Params[%d]: %w", i, err)
		}
	}
	if len(all.MutatingBindings) > 0 {
		e.mutatingPolicies = policy.NewMutating(all.Mutating, all.MutatingBindings, settings)
	}
	if len(all.ValidatingBindings) > 0 {
		e.validatingPolicies = policy.NewValidating(all.Validating, all.ValidatingBindings, settings)
	}
	return nil
}

// evaluations collects the evaluations of one request.
type evaluations struct {
	round  func() int
	all    []*policy.Evaluation
	rounds []int
}

// Begin implements policy.Recorder.
func (e *evaluations) Begin(one *policy.Evaluation) {
	e.all, e.rounds = append(e.all, one), append(e.rounds, e.round())
}

// list returns the evaluations.
func (e *evaluations) list() (list []Evaluation) {
	for i, one := range e.all {
		if one.Excluded && e.rounds[i] > 0 {
			continue // the dispatcher checks the conditions of all policies again, although it applies only some of them
		}
		list = append(list, evaluationOf(one, e.rounds[i]))
	}
	return list
}

func evaluationOf(e *policy.Evaluation, round int) Evaluation {
	result := Evaluation{Policy: e.Policy, Binding: e.Binding, Mutating: e.Mutating, Round: round, Param: e.Param,
		Effect: Allowed, Mutated: e.Mutated, Actions: e.Actions, Condition: e.Condition}
	denies := e.Mutating || slices.Contains(e.Actions, admissionregistrationv1.Deny)
	for _, f := range e.Failures {
		result.Failures = append(result.Failures, f.Message)
		switch {
		case f.Ignored && result.Effect == Allowed:
			result.Effect = FailedOpen
		case f.Ignored || !denies && !f.Rejects:
		case f.IsError && result.Effect != Denied:
			result.Effect = Failed
		case !f.IsError:
			result.Effect = Denied
		}
	}
	if e.Excluded {
		result.Effect = Excluded
	}
	return result
}

// An ExplainedPolicy describes a policy with one of its bindings in an [Explanation].
type ExplainedPolicy struct {
	Policy, Binding string
	Mutating        bool
	// Reason is [Matches] if the policy was evaluated. Otherwise it is the first reason why not: [ByResource],
	// [ByNamespaceSelector], [ByObjectSelector], [ByRules], [ByMatchCondition], [ByParam] or [ByRejection].
	Reason Reason
	// Detail describes the reason. For a policy that was evaluated, it is empty.
	Detail string
	// Evaluations has an evaluation for each parameter, or one if the policy has no parameters.
	Evaluations []Evaluation
}

// explainPolicy returns the explanation of a policy before its evaluation. Its Reason is the first reason why the policy is
// not evaluated, or Matches.
func (p *predicates) explainPolicy(pair policy.Pair, a admission.Attributes, o inprocess.Interfaces) ExplainedPolicy {
	x := ExplainedPolicy{Policy: pair.Policy, Binding: pair.Binding, Mutating: pair.Mutating, Reason: Matches}
	m, err := pair.Mismatch(a, o)
	if err == nil && m == nil {
		var exist bool
		if exist, err = pair.HasParams(a); err == nil && !exist {
			x.Reason, x.Detail = ByParam, "its parameter does not exist, which parameterNotFoundAction Allow permits"
		}
	}
	switch {
	case m != nil:
		x.Reason, x.Detail = p.excluded(m, a)
	case err != nil: // the API server evaluates no expression and applies the failurePolicy
		failed := &policy.Evaluation{Policy: pair.Policy, Binding: pair.Binding, Mutating: pair.Mutating, Failures: []policy.Failure{{Message: err.Error(), IsError: true, Ignored: pair.Ignores(), Rejects: true}}}
		x.Evaluations = []Evaluation{evaluationOf(failed, 0)}
	}
	return x
}

// setEvaluations adds the evaluations of this policy. If there are none, or none has an effect, it sets Reason and Detail.
func (x *ExplainedPolicy) setEvaluations(all []Evaluation) {
	for _, one := range all {
		if one.Policy == x.Policy && one.Binding == x.Binding && one.Mutating == x.Mutating {
			x.Evaluations = append(x.Evaluations, one)
		}
	}
	switch {
	case x.Reason != Matches:
	case len(x.Evaluations) == 0:
		x.Reason, x.Detail = ByRejection, rejectedBefore
	case !slices.ContainsFunc(x.Evaluations, func(one Evaluation) bool { return one.Effect != Excluded }):
		x.Reason, x.Detail = ByMatchCondition, "a condition cannot be evaluated, and failurePolicy is Ignore"
		if name := x.Evaluations[0].Condition; name != "" {
			x.Detail = fmt.Sprintf("condition %q is false", name)
		}
	}
}

// excluded returns the reason why a policy or its binding excludes a request.
func (p *predicates) excluded(m *policy.Mismatch, a admission.Attributes) (Reason, string) {
	whose := ""
	if m.InBinding {
		whose = "the binding's "
	}
	switch m.Field {
	case "":
		return ByResource, fmt.Sprintf("the API server evaluates no policies for a %s", a.GetKind().Kind)
	case "namespaceSelector":
		labels, err := p.namespaces.GetNamespaceLabels(a)
		if err != nil {
			return ByNamespaceSelector, err.Error()
		}
		return ByNamespaceSelector, whose + "namespaceSelector " + labelsText(whoseLabels(a), m.Selector, labels)
	case "objectSelector":
		return ByObjectSelector, whose + "objectSelector " + objectLabelsText(m.Selector, a.GetObject(), a.GetOldObject())
	case "excludeResourceRules":
		return ByRules, whose + "excludeResourceRules has a rule for " + describe(a)
	}
	return ByRules, "no rule in " + whose + "resourceRules is for " + describe(a)
}
