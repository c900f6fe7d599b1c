// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// admitFunc is a raw handler. The patch of a validating hook is not sent.
type admitFunc func(context.Context, *review.Request) (*review.Decision, patch.Patch, error)

// A rawCall is a call of a handler that gets the documents as bytes. The handler may keep them, so
// they are not in reused memory.
type rawCall struct {
	exchange
	admit admitFunc
	req   review.Request // the handler may change it
}

func (c *rawCall) ReadObject(body []byte, offset int) (end int, err error) {
	return skipObject(body, offset)
}

func (c *rawCall) accept(wire *review.Request) (*review.Decision, error) {
	c.req = *wire
	return nil, nil
}

func (c *rawCall) handle() outcome {
	d, p, err := c.admit(&c.ctx, &c.req)
	if err == nil && d == nil {
		err = errors.New("the handler returned neither a decision nor an error")
	}
	return outcome{d, p, err}
}

func (c *rawCall) changes(own patch.Patch) (patch.Patch, error) { return own, nil }

// denying wraps a raw handler. If the handler returns an error that denies, the wrapper returns a
// denial instead.
func denying(admit admitFunc) admitFunc {
	return func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
		noObject, operation := req.Object == nil, req.Operation // the handler may change them
		d, p, err := admit(ctx, req)
		switch {
		case err == nil && noObject && len(p) > 0: // the API server would reject the request whatever the failurePolicy
			return nil, nil, fmt.Errorf("the handler patches the object of a %s, which has none", operation)
		case err == nil:
			return d, withEffect(p), p.Check()
		}
		status, ok := denialOf(err, &req.Metadata)
		if !ok {
			return nil, nil, err
		}
		if d == nil {
			d = review.Allow()
		}
		d.Deny(status)
		return d, nil, nil
	}
}

// withEffect drops a patch that has only test operations. Such a patch changes nothing, but it would make the API
// server reinvoke other webhooks.
func withEffect(p patch.Patch) patch.Patch {
	if slices.ContainsFunc(p, func(op patch.Operation) bool { return op.Op != patch.Test }) {
		return p
	}
	return nil
}
