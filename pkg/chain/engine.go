// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/policy"
)

// Chain is the engine that [New] returns. Besides Admit, it has Explain, which calls no webhooks.
type Chain struct{ *engine }

var _ Engine = (*Chain)(nil)

// New returns an engine that runs the API server's own admission code in this process. The error lists everything
// that the API server would reject in the configurations. See [ConfigurationErrors].
func New(w Webhooks, o Options) (*Chain, error) {
	e, err := newEngine(w, o)
	if err != nil {
		return nil, err
	}
	return &Chain{e}, nil
}

// Close closes idle connections to webhooks.
func (c *Chain) Close() error {
	c.clients.Close()
	return nil
}

// Admit runs one request through the webhooks as the API server does.
func (c *Chain) Admit(ctx context.Context, req Request) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, refusal, err := c.decode(req)
	if err != nil {
		return nil, err
	}
	calls := newCaller(c.engine, s)
	defer c.holdNamespace(s.DecodedRequest)()
	warnings, err := withWarnings(ctx, func(ctx context.Context) error {
		if refusal != nil {
			return refusal
		}
		defer calls.finish()
		return inprocess.NewRun(s, calls, c.storage()).Admit(policy.WithRecorder(inprocess.WithRecorder(ctx, calls.recording), calls.policies))
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	result, err := newResult(c.engine, calls, err)
	if err != nil {
		return nil, err
	}
	result.Warnings = warnings
	return result, nil
}

// Explain returns for each webhook whether the API server would call it for a request, and the result of each
// predicate: selectors, rules and matchConditions. It calls no webhooks.
func (c *Chain) Explain(ctx context.Context, req Request) (*Explanation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, refusal, err := c.decode(req)
	if err != nil {
		return nil, err
	}
	s.Context = ctx
	e := &explaining{engine: c.engine, subject: s, explanation: &Explanation{}}
	defer c.holdNamespace(s.DecodedRequest)()
	_, err = withWarnings(ctx, func(ctx context.Context) error {
		if refusal != nil {
			return refusal
		}
		storage := c.storage()
		storage.ExplainOnly = true
		return inprocess.NewRun(s, e, storage).Admit(ctx)
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case refusal != nil && s.Object == nil && req.Object != nil:
		return nil, fmt.Errorf("cannot decode the request: %w", refusal)
	}
	e.finish()
	if err != nil {
		e.explanation.Rejection = rejectionOf(err, c.realHosts)
	}
	return e.explanation, nil
}
