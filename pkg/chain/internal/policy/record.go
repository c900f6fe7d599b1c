// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// An Evaluation is one evaluation of a policy for a binding and a parameter.
type Evaluation struct {
	Policy, Binding string
	Mutating        bool
	// Param is the namespace and the name of the parameter, or empty.
	Param string
	// Excluded means that a matchCondition is false or, under failurePolicy Ignore, cannot be evaluated. Condition is the
	// name of the matchCondition that is false.
	Excluded  bool
	Condition string
	// Mutated means that the policy changed the object.
	Mutated bool
	// Failures are the failed validations, and the errors.
	Failures []Failure
	// Actions are the validationActions of the binding.
	Actions []admissionregistrationv1.ValidationAction

	before runtime.Object // the object before the first mutation
}

// A Failure is a failed validation, or an error.
type Failure struct {
	Message string
	Reason  metav1.StatusReason
	// IsError means that an expression cannot be evaluated. Ignored means that failurePolicy is Ignore. Rejects means that
	// the API server rejects the request whatever the validationActions of the binding are.
	IsError, Ignored, Rejects bool
}

// A Recorder records evaluations. The plugins call Begin when an evaluation starts, and fill in e until it ends.
type Recorder interface{ Begin(e *Evaluation) }

type recorderKey struct{}

// WithRecorder returns a context with a recorder. It is for one request, because the plugins evaluate the policies of a
// request one after the other.
func WithRecorder(ctx context.Context, r Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, &recording{recorder: r})
}

// A recording has the evaluation that is in progress.
type recording struct {
	recorder Recorder
	current  *Evaluation
}

// begin records a new evaluation. It returns a recording without a recorder if ctx has none.
func begin(ctx context.Context, p Pair, param runtime.Object) *recording {
	r, ok := ctx.Value(recorderKey{}).(*recording)
	if !ok {
		r = &recording{}
	}
	r.current = &Evaluation{Policy: p.Policy, Binding: p.Binding, Mutating: p.Mutating, Param: nameOf(param)}
	if r.recorder != nil {
		r.recorder.Begin(r.current)
	}
	return r
}

// current returns the evaluation that is in progress, or a new one if ctx has no recorder.
func current(ctx context.Context) *Evaluation {
	if r, ok := ctx.Value(recorderKey{}).(*recording); ok && r.current != nil {
		return r.current
	}
	return &Evaluation{}
}

func nameOf(param runtime.Object) string {
	if param == nil {
		return ""
	}
	m, err := meta.Accessor(param)
	if err != nil {
		return ""
	}
	if m.GetNamespace() == "" {
		return m.GetName()
	}
	return m.GetNamespace() + "/" + m.GetName()
}

// recordMutations returns e with wrappers that record each evaluation.
func recordMutations(p Pair, e mutating.PolicyEvaluator) mutating.PolicyEvaluator {
	e.Matcher = recordedConditions{e.Matcher, p}
	e.Mutators = slices.Clone(e.Mutators)
	for i, m := range e.Mutators {
		e.Mutators[i] = recordedPatcher{m, p, i == 0}
	}
	return e
}

// recordedConditions records the evaluations of a mutating policy that its matchConditions exclude.
type recordedConditions struct {
	matchconditions.Matcher // nil if there are no conditions
	pair                    Pair
}

// Match evaluates the conditions.
func (r recordedConditions) Match(ctx context.Context, a *admission.VersionedAttributes, param runtime.Object, authz authorizer.Authorizer) matchconditions.MatchResult {
	if r.Matcher == nil {
		return matchconditions.MatchResult{Matches: true}
	}
	result := r.Matcher.Match(ctx, a, param, authz)
	if result.Matches {
		return result
	}
	e := begin(ctx, r.pair, param).current
	e.Excluded, e.Condition = result.Error == nil, result.FailedConditionName
	if result.Error != nil {
		e.Failures = []Failure{{Message: result.Error.Error(), IsError: true, Ignored: r.pair.Ignores()}}
	}
	return result
}

// recordedPatcher records a mutation of a policy.
type recordedPatcher struct {
	patch.Patcher
	pair  Pair
	first bool
}

// Patch returns the changed object.
func (p recordedPatcher) Patch(ctx context.Context, request patch.Request, budget int64) (runtime.Object, error) {
	if p.first {
		begin(ctx, p.pair, request.OptionalVariables.VersionedParams).current.before = request.VersionedAttributes.VersionedObject
	}
	changed, err := p.Patcher.Patch(ctx, request, budget)
	e := current(ctx)
	if err != nil {
		// The dispatcher returns an error with an API status at once, whatever the failurePolicy is.
		ignored := p.pair.Ignores() && !errors.As(err, new(*apierrors.StatusError))
		e.Failures = append(e.Failures, Failure{Message: err.Error(), IsError: true, Ignored: ignored})
		return changed, err
	}
	e.Mutated = !equality.Semantic.DeepEqual(e.before, asTyped(request, changed))
	return changed, nil
}

// asTyped converts the result of a mutation to a typed object, as the dispatcher does.
func asTyped(request patch.Request, changed runtime.Object) runtime.Object {
	if _, ok := request.VersionedAttributes.VersionedObject.(*unstructured.Unstructured); ok {
		return changed
	}
	typed, err := request.ObjectInterfaces.GetObjectConvertor().ConvertToVersion(changed, request.VersionedAttributes.VersionedKind.GroupVersion())
	if err != nil {
		return changed
	}
	return typed
}

// recordedMatcher records the matchCondition that excludes a request from a validating policy.
type recordedMatcher struct{ matchconditions.Matcher }

// Match evaluates the conditions.
func (r recordedMatcher) Match(ctx context.Context, a *admission.VersionedAttributes, param runtime.Object, authz authorizer.Authorizer) matchconditions.MatchResult {
	result := r.Matcher.Match(ctx, a, param, authz)
	if !result.Matches && result.Error == nil {
		e := current(ctx)
		e.Excluded, e.Condition = true, result.FailedConditionName
	}
	return result
}

// recordedValidator records the evaluations of a validating policy for a binding.
type recordedValidator struct {
	validating.Validator
	pair    Pair
	actions []admissionregistrationv1.ValidationAction
}

// Validate evaluates the validations.
func (v recordedValidator) Validate(ctx context.Context, resource schema.GroupVersionResource, a *admission.VersionedAttributes, param runtime.Object, namespace *corev1.Namespace, budget int64, authz authorizer.Authorizer) validating.ValidateResult {
	e := begin(ctx, v.pair, param).current
	e.Actions = v.actions
	result := v.Validator.Validate(ctx, resource, a, param, namespace, budget, authz)
	for _, d := range result.Decisions {
		if d.Evaluation == validating.EvalError || d.Action == validating.ActionDeny {
			e.Failures = append(e.Failures, Failure{Message: d.Message, Reason: d.Reason, IsError: d.Evaluation == validating.EvalError, Ignored: d.Action == validating.ActionAdmit})
		}
	}
	for _, note := range result.AuditAnnotations {
		if note.Action == validating.AuditAnnotationActionError {
			e.Failures = append(e.Failures, Failure{Message: note.Error, IsError: true, Rejects: true})
		}
	}
	return result
}
