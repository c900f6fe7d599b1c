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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
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
	// object is the object after the last mutation of this round, or nil before the first.
	object runtime.Object
}

// beginRound forgets the object of the last round, which other plugins may have changed since.
func beginRound(ctx context.Context) {
	if r, ok := ctx.Value(recorderKey{}).(*recording); ok {
		r.object = nil
	}
}

// begin records a new evaluation.
func begin(ctx context.Context, p Pair, param runtime.Object) *recording {
	r := recordingOf(ctx)
	r.current = &Evaluation{Policy: p.Policy, Binding: p.Binding, Mutating: p.Mutating, Param: nameOf(param)}
	if r.recorder != nil {
		r.recorder.Begin(r.current)
	}
	return r
}

// recordingOf returns the recording of ctx, or one without a recorder.
func recordingOf(ctx context.Context) *recording {
	if r, ok := ctx.Value(recorderKey{}).(*recording); ok {
		return r
	}
	return &recording{current: &Evaluation{}}
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
	if e.Matcher != nil {
		e.Matcher = recordConditions(e.Matcher, func(ctx context.Context, param runtime.Object, result matchconditions.MatchResult) {
			if result.Matches {
				return
			}
			one := begin(ctx, p, param).current
			one.Excluded, one.Condition = result.Error == nil, result.FailedConditionName
			if result.Error != nil {
				one.Failures = []Failure{{Message: result.Error.Error(), IsError: true, Ignored: p.Ignores()}}
			}
		})
	}
	e.Mutators = slices.Clone(e.Mutators)
	for i, m := range e.Mutators {
		e.Mutators[i] = recordedPatcher{m, p, i == 0}
	}
	return e
}

// recordConditions returns a matcher that passes its results to record. A is the type of the authorizer, which differs
// between the versions of the library.
func recordConditions[A any](m interface {
	Match(context.Context, *admission.VersionedAttributes, runtime.Object, A) matchconditions.MatchResult
}, record func(context.Context, runtime.Object, matchconditions.MatchResult)) recordedConditions[A] {
	return recordedConditions[A]{m.Match, record}
}

// recordedConditions passes the results of matchConditions to record.
type recordedConditions[A any] struct {
	match  func(context.Context, *admission.VersionedAttributes, runtime.Object, A) matchconditions.MatchResult
	record func(context.Context, runtime.Object, matchconditions.MatchResult)
}

// Match evaluates the conditions.
func (r recordedConditions[A]) Match(ctx context.Context, a *admission.VersionedAttributes, param runtime.Object, authorizer A) matchconditions.MatchResult {
	result := r.match(ctx, a, param, authorizer)
	r.record(ctx, param, result)
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
	r := recordingOf(ctx)
	if p.first {
		r = begin(ctx, p.pair, request.OptionalVariables.VersionedParams)
		if r.object == nil {
			r.object = request.VersionedAttributes.GetObject()
		}
		r.current.before = r.object
	}
	changed, err := p.Patcher.Patch(ctx, request, budget)
	if err != nil {
		// The dispatcher returns an error with an API status at once, whatever the failurePolicy is.
		ignored := p.pair.Ignores() && !errors.As(err, new(*apierrors.StatusError))
		r.current.Failures = append(r.current.Failures, Failure{Message: err.Error(), IsError: true, Ignored: ignored})
		return changed, err
	}
	r.object = asTyped(request, changed)
	r.current.Mutated = !equality.Semantic.DeepEqual(bare(r.current.before), bare(r.object))
	return changed, nil
}

// bare returns a copy of an object without its kind, which typed objects have only at times.
func bare(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object
}

// asTyped converts the result of a mutation to a typed object, as the dispatcher does.
func asTyped(request patch.Request, changed runtime.Object) runtime.Object {
	if _, ok := request.VersionedAttributes.GetObject().(runtime.Unstructured); ok {
		return changed
	}
	typed, err := request.ObjectInterfaces.GetObjectConvertor().ConvertToVersion(changed, request.VersionedAttributes.VersionedKind.GroupVersion())
	if err != nil {
		return changed
	}
	return typed
}

// recordValidations returns a validator that records each evaluation. As in recordConditions, A is the type of the
// authorizer.
func recordValidations[A any](v interface {
	Validate(context.Context, schema.GroupVersionResource, *admission.VersionedAttributes, runtime.Object, *corev1.Namespace, int64, A) validating.ValidateResult
	CompileError() error
}, p Pair, actions []admissionregistrationv1.ValidationAction) recordedValidator[A] {
	return recordedValidator[A]{v.Validate, v.CompileError, p, actions}
}

// recordedValidator records the evaluations of a validating policy for a binding.
type recordedValidator[A any] struct {
	validate     func(context.Context, schema.GroupVersionResource, *admission.VersionedAttributes, runtime.Object, *corev1.Namespace, int64, A) validating.ValidateResult
	compileError func() error
	pair         Pair
	actions      []admissionregistrationv1.ValidationAction
}

// CompileError returns the compilation error of the policy.
func (v recordedValidator[A]) CompileError() error { return v.compileError() }

// Validate evaluates the validations.
func (v recordedValidator[A]) Validate(ctx context.Context, resource schema.GroupVersionResource, a *admission.VersionedAttributes, param runtime.Object, namespace *corev1.Namespace, budget int64, authorizer A) validating.ValidateResult {
	e := begin(ctx, v.pair, param).current
	e.Actions = v.actions
	result := v.validate(ctx, resource, a, param, namespace, budget, authorizer)
	for _, d := range result.Decisions {
		if d.Evaluation == validating.EvalError || d.Action == validating.ActionDeny {
			e.Failures = append(e.Failures, Failure{Message: d.Message, IsError: d.Evaluation == validating.EvalError, Ignored: d.Action == validating.ActionAdmit})
		}
	}
	for _, note := range result.AuditAnnotations {
		if note.Action == validating.AuditAnnotationActionError {
			e.Failures = append(e.Failures, Failure{Message: note.Error, IsError: true, Rejects: true})
		}
	}
	return result
}
