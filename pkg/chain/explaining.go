// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/policy"
)

// An explaining builds the [Explanation] of one request. It implements inprocess.WebhookStages, and for each webhook it
// records whether and why it would be called.
type explaining struct {
	*engine
	subject     *inprocess.Subject
	explanation *Explanation
	explained   int // 1 after the mutating webhooks, 2 after the validating webhooks
}

// Mutate implements inprocess.WebhookStages. It evaluates mutating policies, and explains the mutating webhooks instead of
// calling them.
func (e *explaining) Mutate(a admission.Attributes) error {
	e.subject.Begin(a)
	if e.explanation.Twice {
		return nil
	}
	var err error
	if p := e.mutatingPolicies; p != nil && p.Handles(a.GetOperation()) {
		err = e.explainPolicies(p.Pairs, a, func(ctx context.Context, o inprocess.Interfaces) error { return p.Admit(ctx, a, o) })
		e.explanation.Early = err != nil
	}
	e.explain(a, e.mutating)
	return err
}

// Validate implements inprocess.WebhookStages. It evaluates validating policies, and explains the validating webhooks
// instead of calling them.
func (e *explaining) Validate(a admission.Attributes) error {
	e.subject.Begin(a)
	if e.explanation.Twice {
		return nil
	}
	var err error
	if p := e.validatingPolicies; p != nil {
		err = e.explainPolicies(p.Pairs, a, func(ctx context.Context, o inprocess.Interfaces) error { return p.Validate(ctx, a, o) })
	}
	e.explain(a, e.validating)
	return err
}

// NextStep records that the API server calls the webhooks a second time. The explanation lists each webhook only once.
func (e *explaining) NextStep() { e.explanation.Twice = true }

// explain adds the explanation of the webhooks of one type.
func (e *explaining) explain(a admission.Attributes, hooks []*inprocess.Hook) {
	e.explained++
	for _, h := range hooks {
		e.explanation.Webhooks = append(e.explanation.Webhooks, e.predicates.explain(e.subject.Context, h, a, e.subject.Interfaces()))
	}
}

// explainPolicies evaluates the policies of one type and explains the result. dispatch runs their plugin.
func (e *explaining) explainPolicies(pairs []policy.Pair, a admission.Attributes, dispatch func(context.Context, inprocess.Interfaces) error) error {
	o := e.subject.Interfaces()
	found := &evaluations{round: func() int { return 0 }}
	all := make([]ExplainedPolicy, len(pairs))
	for i, p := range pairs {
		all[i] = e.predicates.explainPolicy(p, a, o) // the API server also matches all policies before it applies the first
	}
	err := dispatch(policy.WithRecorder(e.subject.Context, found), o)
	for i := range all {
		all[i].setEvaluations(found.list())
	}
	e.explanation.Policies = append(e.explanation.Policies, all...)
	return err
}

// finish explains the policies and webhooks that the API server does not reach because it rejects the request.
func (e *explaining) finish() {
	if e.explained == 0 {
		e.explanation.Early = true
		if p := e.mutatingPolicies; p != nil && p.Handles(e.attributes().GetOperation()) {
			e.explainUnreached(p.Pairs)
		}
		e.explain(e.attributes(), e.mutating)
	}
	if e.explained == 1 {
		if p := e.validatingPolicies; p != nil {
			e.explainUnreached(p.Pairs)
		}
		e.explain(e.attributes(), e.validating)
	}
}

// explainUnreached explains policies that the API server does not evaluate because it rejects the request.
func (e *explaining) explainUnreached(pairs []policy.Pair) {
	for _, p := range pairs {
		x := e.predicates.explainPolicy(p, e.attributes(), e.subject.Interfaces())
		x.Evaluations = nil
		x.setEvaluations(nil)
		e.explanation.Policies = append(e.explanation.Policies, x)
	}
}

// attributes returns the attributes of the last admission. If the request was rejected before admission, they have the
// objects of the request.
func (e *explaining) attributes() admission.Attributes {
	if e.subject.Attributes == nil {
		e.subject.Begin(e.subject.NewAttributes(e.subject.Object, e.subject.Old))
	}
	return e.subject.Attributes
}
