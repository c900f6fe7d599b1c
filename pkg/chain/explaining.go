// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"k8s.io/apiserver/pkg/admission"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// An explaining builds the [Explanation] of one request. It implements inprocess.WebhookStages, and for each webhook it
// records whether and why it would be called.
type explaining struct {
	subject              *inprocess.Subject
	predicates           *predicates
	mutating, validating []*inprocess.Hook
	explanation          *Explanation
	explained            int // 1 after the mutating webhooks, 2 after the validating webhooks
}

// Mutate implements inprocess.WebhookStages. It explains the mutating webhooks instead of calling them.
func (e *explaining) Mutate(a admission.Attributes) error { return e.explain(a, e.mutating) }

// Validate implements inprocess.WebhookStages. It explains the validating webhooks instead of calling them.
func (e *explaining) Validate(a admission.Attributes) error { return e.explain(a, e.validating) }

// NextStep records that the API server calls the webhooks a second time. The explanation lists each webhook only once.
func (e *explaining) NextStep() { e.explanation.Twice = true }

// explain adds the explanation of the webhooks of one type.
func (e *explaining) explain(a admission.Attributes, hooks []*inprocess.Hook) error {
	e.subject.Begin(a)
	if e.explanation.Twice {
		return nil
	}
	e.explained++
	for _, h := range hooks {
		e.explanation.Webhooks = append(e.explanation.Webhooks, e.predicates.explain(e.subject.Context, h, a, e.subject.Interfaces()))
	}
	return nil
}

// finish explains the webhooks that the API server does not call because it rejects the request.
func (e *explaining) finish() {
	if e.explained == 0 {
		e.explanation.Early = true
		_ = e.Mutate(e.attributes()) // never fails
	}
	if e.explained == 1 {
		_ = e.Validate(e.attributes())
	}
}

// attributes returns the attributes of the last admission. If the request was rejected before admission, they have the
// objects of the request.
func (e *explaining) attributes() admission.Attributes {
	if e.subject.Attributes == nil {
		return e.subject.NewAttributes(e.subject.Object, e.subject.Old)
	}
	return e.subject.Attributes
}
