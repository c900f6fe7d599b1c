// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// explainConditions evaluates each matchCondition. All share one cost budget, as in the API server.
func (p *predicates) explainConditions(ctx context.Context, h *inprocess.Hook, a admission.Attributes, kind schema.GroupVersionKind, o inprocess.Interfaces) []Predicate {
	all := h.GetMatchConditions()
	if len(all) == 0 {
		return nil
	}
	predicates := make([]Predicate, len(all))
	failed := func(err error, answer PredicateResult) []Predicate {
		for i, c := range all {
			predicates[i] = Predicate{Reason: ByMatchCondition, Condition: c.Name, Result: answer, Detail: err.Error()}
		}
		return predicates
	}
	versioned, err := admission.NewVersionedAttributes(a, kind, o)
	switch {
	case err != nil && o.Custom[a.GetKind().GroupKind()] == nil && kind != a.GetKind():
		return failed(fmt.Errorf("it reads %s, and this engine cannot convert the object to that", kind), Unknown)
	case err != nil:
		return failed(err, Errs)
	}
	request := plugincel.CreateAdmissionRequest(versioned.Attributes, metav1.GroupVersionResource(versioned.GetResource()), metav1.GroupVersionKind(versioned.VersionedKind))
	budget := int64(celconfig.RuntimeCELCostBudgetMatchConditions)
	for i, c := range all {
		may := &recordingAuthorizer{Authorizer: p.authorizer, guessed: p.guessedAuthorizer}
		compiled := conditions().CompileCondition([]plugincel.ExpressionAccessor{&matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression}},
			plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
		results, left, err := compiled.ForInput(ctx, versioned, request, plugincel.OptionalVariableBindings{Authorizer: may}, nil, budget)
		if err != nil {
			return failed(err, Errs) // the budget is exhausted
		}
		budget = left
		predicates[i] = Predicate{Reason: ByMatchCondition, Condition: c.Name}
		predicates[i].Result, predicates[i].Detail = may.answer(results[0])
	}
	return predicates
}

// A recordingAuthorizer is an authorizer that records a question which the wrapped authorizer cannot answer.
type recordingAuthorizer struct {
	authorizer.Authorizer
	guessed bool   // the wrapped authorizer is the default one
	unknown string // the question, or empty
}

func (a *recordingAuthorizer) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, why, err := a.Authorizer.Authorize(ctx, asked)
	switch {
	case err != nil:
		a.unknown = fmt.Sprintf("whether %s is not known: %v", mayDo(asked), err)
	case a.guessed && decision != authorizer.DecisionAllow: // members of system:masters are allowed everything on every API server
		a.unknown = fmt.Sprintf("whether %s is not known", mayDo(asked))
	}
	return decision, why, err
}

// mayDo describes a question to the authorizer: "jane may get pods in namespace shop".
func mayDo(a authorizer.Attributes) string {
	what := a.GetPath()
	if a.IsResourceRequest() {
		what = a.GetResource()
		if group := a.GetAPIGroup(); group != "" {
			what += "." + group
		}
		if sub := a.GetSubresource(); sub != "" {
			what += "/" + sub
		}
		if name := a.GetName(); name != "" {
			what += " " + name
		}
		if namespace := a.GetNamespace(); namespace != "" {
			what += " in namespace " + namespace
		}
	}
	return fmt.Sprintf("%s may %s %s", a.GetUser().GetName(), a.GetVerb(), what)
}

func (a *recordingAuthorizer) answer(result plugincel.EvaluationResult) (PredicateResult, string) {
	switch {
	case a.unknown != "":
		return Unknown, a.unknown
	case result.Error != nil:
		return Errs, result.Error.Error()
	case result.EvalResult.Value() == false:
		return Fails, "false"
	}
	return Holds, "true"
}
