// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/policy"
)

// Policies are admission policies, whose expressions are written in CEL. The API server evaluates them itself: mutating
// policies before it calls mutating webhooks, and validating policies before it calls validating webhooks. A policy
// without a binding does nothing.
//
// The engine evaluates policies in the order of their names, because the order in an API server is not fixed. It never
// evaluates the policies for policies and their bindings, as the API server does.
type Policies struct {
	Mutating           []*admissionregistrationv1.MutatingAdmissionPolicy
	MutatingBindings   []*admissionregistrationv1.MutatingAdmissionPolicyBinding
	Validating         []*admissionregistrationv1.ValidatingAdmissionPolicy
	ValidatingBindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Params are the objects that exist for the paramRefs of bindings. An object has the version that the paramKind of
	// its policy names. A custom resource must be an *unstructured.Unstructured, and its definition must be in
	// Options.CRDs.
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
	// Failures are the messages of the validations that do not hold, and the errors of expressions.
	Failures []string
	// Actions are the validationActions of the binding of a validating policy.
	Actions []admissionregistrationv1.ValidationAction
	// Condition is the name of the matchCondition that is false if Effect is Excluded. It is empty if a condition cannot
	// be evaluated and failurePolicy is Ignore.
	Condition string
}

// Excluded: a matchCondition of a policy excludes the request, so the policy has no effect.
const Excluded Effect = "Excluded"

// ByParam: the parameter of a policy does not exist, and parameterNotFoundAction is Allow.
const ByParam Reason = "Param"

// completed returns a copy of the policies with the API server's defaults. The error names what the API server would
// reject, as far as it prevents an evaluation. It does not check all rules of the API server.
func (p Policies) completed() (Policies, error) {
	var all Policies
	var errs []error
	reject := func(kind, name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", kind, name, err))
		}
	}
	for _, m := range p.Mutating {
		m = m.DeepCopy()
		m.Spec.FailurePolicy = ptr.To(ptr.Deref(m.Spec.FailurePolicy, admissionregistrationv1.Fail))
		reject("MutatingAdmissionPolicy", m.Name, errors.Join(constrained(m.Spec.MatchConstraints), some("mutations", len(m.Spec.Mutations)), mutationsOf(m), policy.CheckMutating(m)))
		all.Mutating = append(all.Mutating, m)
	}
	for _, v := range p.Validating {
		v = v.DeepCopy()
		v.Spec.FailurePolicy = ptr.To(ptr.Deref(v.Spec.FailurePolicy, admissionregistrationv1.Fail))
		reject("ValidatingAdmissionPolicy", v.Name, errors.Join(constrained(v.Spec.MatchConstraints), some("validations or auditAnnotations", len(v.Spec.Validations)+len(v.Spec.AuditAnnotations)), policy.CheckValidating(v)))
		all.Validating = append(all.Validating, v)
	}
	for _, b := range p.MutatingBindings {
		b = b.DeepCopy()
		setSelectors(b.Spec.MatchResources)
		reject("MutatingAdmissionPolicyBinding", b.Name, some("policyName", len(b.Spec.PolicyName)))
		all.MutatingBindings = append(all.MutatingBindings, b)
	}
	for _, b := range p.ValidatingBindings {
		b = b.DeepCopy()
		setSelectors(b.Spec.MatchResources)
		reject("ValidatingAdmissionPolicyBinding", b.Name, errors.Join(some("policyName", len(b.Spec.PolicyName)), some("validationActions", len(b.Spec.ValidationActions))))
		all.ValidatingBindings = append(all.ValidatingBindings, b)
	}
	all.Params = p.Params
	return all, errors.Join(errs...)
}

// some returns an error if a field is empty.
func some(field string, length int) error {
	if length == 0 {
		return fmt.Errorf("spec.%s: Required value", field)
	}
	return nil
}

// constrained sets the defaults of the matchConstraints of a policy.
func constrained(r *admissionregistrationv1.MatchResources) error {
	setSelectors(r)
	if r == nil {
		return some("matchConstraints", 0)
	}
	return some("matchConstraints.resourceRules", len(r.ResourceRules))
}

// setSelectors sets the defaults of the fields that match requests (SetDefaults_MatchResources).
func setSelectors(r *admissionregistrationv1.MatchResources) {
	if r == nil {
		return
	}
	r.MatchPolicy = ptr.To(ptr.Deref(r.MatchPolicy, admissionregistrationv1.Equivalent))
	if r.NamespaceSelector == nil {
		r.NamespaceSelector = &metav1.LabelSelector{}
	}
	if r.ObjectSelector == nil {
		r.ObjectSelector = &metav1.LabelSelector{}
	}
}

// mutationsOf returns an error if a mutation lacks the expression of its patchType.
func mutationsOf(m *admissionregistrationv1.MutatingAdmissionPolicy) error {
	for i, of := range m.Spec.Mutations {
		switch {
		case of.PatchType == admissionregistrationv1.PatchTypeJSONPatch && of.JSONPatch != nil:
		case of.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && of.ApplyConfiguration != nil:
		default:
			return fmt.Errorf("spec.mutations[%d]: want patchType JSONPatch with jsonPatch, or ApplyConfiguration with applyConfiguration", i)
		}
	}
	return nil
}

// addPolicies creates the plugins of the policies.
func (e *engine) addPolicies(client kubernetes.Interface, factory informers.SharedInformerFactory) error {
	all, err := e.options.Policies.completed()
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
			return fmt.Errorf("parameter %d: %w", i, err)
		}
		if err := settings.Params.Add(kind, param); err != nil {
			return fmt.Errorf("parameter %d: %w", i, err)
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
	round func() int
	all   []*policy.Evaluation
	in    []int // rounds
}

// Evaluate implements policy.Recorder.
func (e *evaluations) Evaluate(one *policy.Evaluation) {
	e.all, e.in = append(e.all, one), append(e.in, e.round())
}

// list returns the evaluations.
func (e *evaluations) list() (list []Evaluation) {
	for i, one := range e.all {
		list = append(list, evaluationOf(one, e.in[i]))
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
		case f.Ignored || !denies:
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

// explainPolicy returns the first reason why a policy is not evaluated for a request, or Matches.
func (p *predicates) explainPolicy(pair policy.Pair, a admission.Attributes, o inprocess.Interfaces) ExplainedPolicy {
	x := ExplainedPolicy{Policy: pair.Policy, Binding: pair.Binding, Mutating: pair.Mutating, Reason: Matches}
	switch m, err := pair.Mismatch(a, o); {
	case err != nil:
		x.Detail = err.Error()
	case m != nil:
		x.Reason, x.Detail = p.excluded(m, a)
	}
	return x
}

// evaluated adds the evaluations of the policy, with the reason why there are none or why they have no effect. err is the
// rejection by one of the policies, or nil.
func (x *ExplainedPolicy) evaluated(all []Evaluation, err error) {
	for _, one := range all {
		if one.Policy == x.Policy && one.Binding == x.Binding && one.Mutating == x.Mutating {
			x.Evaluations = append(x.Evaluations, one)
		}
	}
	switch {
	case x.Reason != Matches || x.Detail != "":
	case len(x.Evaluations) == 0 && err != nil:
		x.Reason, x.Detail = ByRejection, rejectedBefore
	case len(x.Evaluations) == 0:
		x.Reason, x.Detail = ByParam, "its parameter does not exist"
	case !slices.ContainsFunc(x.Evaluations, func(one Evaluation) bool { return one.Effect != Excluded }):
		x.Reason, x.Detail = ByMatchCondition, "a condition cannot be evaluated, and failurePolicy is Ignore"
		if name := x.Evaluations[0].Condition; name != "" {
			x.Detail = fmt.Sprintf("condition %q is false", name)
		}
	}
}

// excluded returns the reason why a policy or its binding excludes a request.
func (p *predicates) excluded(m *policy.Mismatch, a admission.Attributes) (Reason, string) {
	of := ""
	if m.InBinding {
		of = " of the binding"
	}
	switch m.Field {
	case "":
		return ByResource, fmt.Sprintf("no policy is evaluated for a %s", a.GetKind().Kind)
	case "namespaceSelector":
		labels, err := p.namespaces.GetNamespaceLabels(a)
		if err != nil {
			return ByNamespaceSelector, err.Error()
		}
		return ByNamespaceSelector, "namespaceSelector" + of + " " + labelsText(whoseLabels(a), m.Selector, labels)
	case "objectSelector":
		return ByObjectSelector, "objectSelector" + of + " " + objectLabelsText(m.Selector, a.GetObject(), a.GetOldObject())
	case "excludeResourceRules":
		return ByRules, "excludeResourceRules" + of + " has a rule for " + describe(a)
	}
	return ByRules, noRule(a) + " in resourceRules" + of
}
