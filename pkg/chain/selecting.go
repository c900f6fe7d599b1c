// SPDX-License-Identifier: Apache-2.0

package chain

// A selected is a hook with the reason why it was selected or not.
type selected struct {
	hook *hook
	reason
}

// A selector finds out for each webhook whether it is selected for a request. It does so when it is the webhook's turn,
// because earlier webhooks can change the object.
type selector struct {
	subject              *subject
	predicates           *predicates
	mutating, validating []*hook
	list                 []selected // in the order of the hooks
}

// selectMutating decides about the first count mutating webhooks, unless it was done before.
func (s *selector) selectMutating(count int) {
	for len(s.list) < count {
		s.add(s.mutating[len(s.list)])
	}
}

// selectValidating decides about the validating webhooks, after all mutating webhooks.
func (s *selector) selectValidating() {
	for _, h := range s.validating[len(s.list)-len(s.mutating):] {
		s.add(h)
	}
}

func (s *selector) add(h *hook) {
	s.list = append(s.list, selected{h, s.predicates.decide(s.subject.ctx, h, s.subject.now(), s.subject.interfaces())})
}
