// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The functions in this file copy the API server's unexported functions compilePolicy.

var environments = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// A source has the fields that policies of both types have.
type source struct {
	name       string
	params     *admissionregistrationv1.ParamKind
	variables  []admissionregistrationv1.Variable
	conditions []admissionregistrationv1.MatchCondition
	failure    *admissionregistrationv1.FailurePolicyType
}

func (s source) options() plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: s.params != nil, HasAuthorizer: true}
}

// compiler returns a compiler that knows the variables of the policy.
func (s source) compiler() (*plugincel.CompositedCompiler, error) {
	compiler, err := plugincel.NewCompositedCompiler(environments())
	if err != nil {
		return nil, err
	}
	for i, v := range s.variables {
		result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, s.options(), environment.StoredExpressions)
		if result.Error != nil {
			err = errors.Join(err, fmt.Errorf("spec.variables[%d].expression: %w", i, result.Error))
		}
	}
	return compiler, err
}

// evaluator compiles expressions. It joins their errors to err. field is the format of the path of an expression.
func (s source) evaluator(compiler *plugincel.CompositedCompiler, err *error, field string, expressions []plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
	compiled := compiler.CompileCondition(expressions, options, environment.StoredExpressions)
	if len(compiled.CompilationErrors()) == 0 {
		return compiled
	}
	for i, x := range expressions { // compile each alone, because the errors do not say which expression they are about
		if x == nil {
			continue
		}
		for _, one := range compiler.CompileCondition([]plugincel.ExpressionAccessor{x}, options, environment.StoredExpressions).CompilationErrors() {
			*err = errors.Join(*err, fmt.Errorf(field+": %w", i, one))
		}
	}
	return compiled
}

// matcher returns the matcher of the matchConditions, or nil if the policy has no matchConditions.
func (s source) matcher(compiler *plugincel.CompositedCompiler, err *error) matchconditions.Matcher {
	if len(s.conditions) == 0 {
		return nil
	}
	var all []plugincel.ExpressionAccessor
	for i := range s.conditions {
		all = append(all, (*matchconditions.MatchCondition)(&s.conditions[i]))
	}
	return matchconditions.NewMatcher(s.evaluator(compiler, err, "spec.matchConditions[%d].expression", all, s.options()), s.failure, "policy", "validate", s.name)
}

// CheckMutating returns the compilation errors of a policy.
func CheckMutating(p *mutating.Policy) error {
	_, err := mutations(p)
	return err
}

func compileMutating(p *mutating.Policy) mutating.PolicyEvaluator {
	evaluator, _ := mutations(p) // an expression with an error fails when it is evaluated
	return evaluator
}

func mutations(p *mutating.Policy) (mutating.PolicyEvaluator, error) {
	s := source{p.Name, p.Spec.ParamKind, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.FailurePolicy}
	compiler, err := s.compiler()
	if compiler == nil {
		return mutating.PolicyEvaluator{Error: err}, err
	}
	e := mutating.PolicyEvaluator{Matcher: s.matcher(compiler, &err), CompositedCompiler: compiler}
	options := s.options()
	options.HasPatchTypes = true
	compile := func(i int, field string, x plugincel.ExpressionAccessor) plugincel.MutatingEvaluator {
		compiled := compiler.CompileMutatingEvaluator(x, options, environment.StoredExpressions)
		for _, one := range compiled.CompilationErrors() {
			err = errors.Join(err, fmt.Errorf("spec.mutations[%d].%s.expression: %w", i, field, one))
		}
		return compiled
	}
	for i, m := range p.Spec.Mutations {
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			e.Mutators = append(e.Mutators, patch.NewJSONPatcher(compile(i, "jsonPatch", &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression})))
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			e.Mutators = append(e.Mutators, patch.NewApplyConfigurationPatcher(compile(i, "applyConfiguration", &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression})))
		}
	}
	return e, err
}

// CheckValidating returns the compilation errors of a policy.
func CheckValidating(p *validating.Policy) error {
	_, err := validations(p)
	return err
}

func compileValidating(p *validating.Policy) validating.Validator {
	v, _ := validations(p) // an expression with an error fails when it is evaluated
	return v
}

func validations(p *validating.Policy) (validating.Validator, error) {
	s := source{p.Name, p.Spec.ParamKind, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.FailurePolicy}
	compiler, err := s.compiler()
	if compiler == nil {
		return validating.NewValidator(nil, nil, nil, nil, s.failure, err), err
	}
	matcher := s.matcher(compiler, &err)
	if matcher != nil {
		matcher = recordConditions(matcher, func(ctx context.Context, _ runtime.Object, result matchconditions.MatchResult) {
			if e := recordingOf(ctx).current; !result.Matches && result.Error == nil {
				e.Excluded, e.Condition = true, result.FailedConditionName
			}
		})
	}
	var checks, messages, annotations []plugincel.ExpressionAccessor
	for _, v := range p.Spec.Validations {
		checks = append(checks, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message plugincel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for _, a := range p.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	messageOptions := plugincel.OptionalVariableDeclarations{HasParams: s.params != nil}
	return validating.NewValidator(s.evaluator(compiler, &err, "spec.validations[%d].expression", checks, s.options()), matcher, s.evaluator(compiler, &err, "spec.auditAnnotations[%d].valueExpression", annotations, s.options()),
		s.evaluator(compiler, &err, "spec.validations[%d].messageExpression", messages, messageOptions), s.failure, nil), err
}
