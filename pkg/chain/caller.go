// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// A caller calls the webhooks of one request with the API server's code, and records the calls.
type caller struct {
	subject   *inprocess.Subject
	chain     chained
	recording *recording
	selector  *selector
	policies  *evaluations
}

func newCaller(e *engine, s *inprocess.Subject) *caller {
	sel := &selector{subject: s, predicates: &e.predicates, mutating: e.mutating, validating: e.validating}
	rec := &recording{mutating: e.mutating, open: map[*inprocess.Hook]*call{}, seen: map[string]bool{},
		beforeCall: func(h *inprocess.Hook) { sel.selectMutating(h.Index + 1) }, // the patch of h is not applied yet
		reinvokes:  func() { sel.selectMutating(len(e.mutating)) },
	}
	return &caller{subject: s, chain: e.admission, recording: rec, selector: sel, policies: &evaluations{round: func() int { return rec.round }}}
}

// Mutate implements inprocess.WebhookStages. It calls the mutating webhooks.
func (c *caller) Mutate(a admission.Attributes) error {
	c.begin(a)
	err := c.chain.Admit(c.subject.Context, c.subject.Attributes, c.subject.Interfaces())
	c.selector.selectMutating(len(c.recording.mutating))
	return err
}

// Validate implements inprocess.WebhookStages. It calls the validating webhooks.
func (c *caller) Validate(a admission.Attributes) error {
	c.begin(a)
	c.selector.selectValidating()
	return c.chain.Validate(c.subject.Context, c.subject.Attributes, c.subject.Interfaces())
}

func (c *caller) begin(a admission.Attributes) {
	c.subject.Begin(&recordedAttributes{a, c.recording})
	c.recording.round = 0
}

// NextStep begins the second step of a Pod's deletion, in which the API server calls the webhooks again.
func (c *caller) NextStep() { c.recording.nextStep() }

// finish records a reason for each webhook that the request did not reach.
func (c *caller) finish() {
	s := c.subject
	s.Context = context.WithoutCancel(s.Context)
	if s.Attributes == nil {
		s.Begin(s.NewAttributes(s.Object, s.Old))
	}
	c.selector.selectMutating(len(c.recording.mutating))
	c.selector.selectValidating()
}
