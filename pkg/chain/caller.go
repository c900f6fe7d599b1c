// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

// webhookStages runs the webhooks of a request. It calls them, or only explains whether they would be called.
type webhookStages interface {
	mutate(admission.Attributes) error
	validate(admission.Attributes) error
	// nextStep begins the second step of a deletion.
	nextStep()
}

// A caller calls the webhooks of one request with the API server's code, and records the calls.
type caller struct {
	subject   *subject
	chain     chained
	recording *recording
	selector  *selector
}

func newCaller(e *engine, s *subject) *caller {
	sel := &selector{subject: s, predicates: &e.predicates, mutating: e.mutating, validating: e.validating}
	rec := &recording{mutating: e.mutating, open: map[*hook]*call{}, seen: map[string]bool{},
		beforeCall: func(h *hook) { sel.selectMutating(h.index + 1) }, // the patch of h is not applied yet
		reinvokes:  func() { sel.selectMutating(len(e.mutating)) },
	}
	return &caller{subject: s, chain: e.admission, recording: rec, selector: sel}
}

func (c *caller) mutate(a admission.Attributes) error {
	c.begin(a)
	err := c.chain.Admit(c.subject.ctx, c.subject.attributes, c.subject.interfaces())
	c.selector.selectMutating(len(c.recording.mutating))
	return err
}

func (c *caller) validate(a admission.Attributes) error {
	c.begin(a)
	c.selector.selectValidating()
	return c.chain.Validate(c.subject.ctx, c.subject.attributes, c.subject.interfaces())
}

func (c *caller) begin(a admission.Attributes) {
	c.subject.begin(&recordedAttributes{a, c.recording})
	c.recording.round = 0
}

func (c *caller) nextStep() { c.recording.nextStep() }

// finish decides about the webhooks whose turn did not come.
func (c *caller) finish() {
	s := c.subject
	s.ctx = context.WithoutCancel(s.ctx)
	if s.attributes == nil {
		s.begin(s.newAttributes(s.Object, s.Old))
	}
	c.selector.selectMutating(len(c.recording.mutating))
	c.selector.selectValidating()
}
