// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
)

// Parallel sends requests to one new instance of a webhook in this process, all at the same time, and returns the answers
// in the order of the requests. It returns false if the webhook runs elsewhere or cannot be created.
func (s *Session) Parallel(w *Webhook, queries []Query) ([]*Answer, bool) {
	if !w.InProcess || s.Over() {
		return nil, false
	}
	one := &instance{newHandler: w.NewHandler, connection: s.Connection}
	if _, err := one.made(); err != nil {
		return nil, false
	}
	calls := make([]*call, len(queries))
	for i, q := range queries {
		calls[i] = s.begin(w, q)
	}
	ctx, cancel := context.WithTimeout(s.Ctx, w.Timeout())
	defer cancel()
	defer s.Connection.Apart()()
	var all sync.WaitGroup
	start := make(chan struct{})
	for _, c := range calls {
		all.Go(func() {
			<-start
			c.status, c.response, c.err = one.Call(ctx, c.body)
		})
	}
	close(start)
	all.Wait()
	answers := make([]*Answer, len(calls))
	for i, c := range calls {
		answers[i] = s.end(c)
	}
	return answers, true
}
