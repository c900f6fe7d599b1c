// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"k8s.io/apiserver/pkg/admission"
)

// An explaining explains the webhooks of one request, in place of calling them.
type explaining struct {
	subject              *subject
	predicates           *predicates
	mutating, validating []*hook
	explanation          *Explanation
	explained            int // 1 after the mutating webhooks, 2 after the validating webhooks
}

func (e *explaining) mutate(a admission.Attributes) error   { return e.explain(a, e.mutating) }
func (e *explaining) validate(a admission.Attributes) error { return e.explain(a, e.validating) }
func (e *explaining) nextStep()                             { e.explanation.Twice = true }

// explain adds the explanation of the webhooks of one type.
func (e *explaining) explain(a admission.Attributes, hooks []*hook) error {
	e.subject.begin(a)
	if e.explanation.Twice {
		return nil
	}
	e.explained++
	for _, h := range hooks {
		e.explanation.Webhooks = append(e.explanation.Webhooks, e.predicates.explain(e.subject.ctx, h, a, e.subject.interfaces()))
	}
	return nil
}

// finish explains the webhooks that the API server does not call because it rejects the request.
func (e *explaining) finish() {
	if e.explained == 0 {
		e.explanation.Early = true
		_ = e.mutate(e.attributes()) // never fails
	}
	if e.explained == 1 {
		_ = e.validate(e.attributes())
	}
}

// attributes returns the attributes of the last admission. If there was none, they have the objects of the request.
func (e *explaining) attributes() admission.Attributes {
	if e.subject.attributes == nil {
		return e.subject.newAttributes(e.subject.Object, e.subject.Old)
	}
	return e.subject.attributes
}
