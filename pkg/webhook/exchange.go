// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// An exchange is one call of a hook: what came, and what the handler made of it.
//
// A handler may keep for ever all that it is given: the context, the Request, the object. So
// an exchange is made for one call and never used again, in one piece of memory with all of
// these. What calls do share are bytes (buffers). The documents lie in them, and a Request
// reaches those until the handler returns; then they are taken away from it, and only then are
// the bytes given back. When the handler is left behind, they never are.
//
// Channels and timers are not shared either: those of a test with a clock of its own
// (testing/synctest) must not be used outside of it.
type exchange struct {
	ctx    callContext
	docs   documents
	groups [4]string // the memory of docs.wire.UserInfo.Groups

	mu       sync.Mutex
	outcome  outcome
	decided  bool // there is an outcome
	leftOver bool // nobody waits for an outcome any more
}

// An outcome is what a handler has decided, or why it did not.
type outcome struct {
	decision *review.Decision
	patch    patch.Patch // of a raw handler
	err      error
}

// A call is an exchange with a handler of one sort: typedCall or rawCall.
type call interface {
	review.ObjectReader
	base() *exchange
	// accept is called once the request was read and is one for the hook. It may decide by
	// itself, and the handler is then not called.
	accept() (*review.Decision, error)
	// handle calls the handler, in a goroutine of its own.
	handle() outcome
	// changes returns the patch of what the handler admitted, who may have made it himself.
	changes(own patch.Patch) (patch.Patch, error)
}

func (x *exchange) base() *exchange { return x }

var errEnded = errors.New("the handler ended its goroutine")

// await calls the handler and waits until it returns, panics or its time is up.
func (x *exchange) await(c call) outcome {
	left := time.Until(x.ctx.deadline)
	if left <= 0 {
		x.ctx.expire()
		return outcome{err: x.ctx.tooLate()}
	}
	go x.run(c)
	timer := time.AfterFunc(left, x.ctx.expire)
	select {
	case <-x.ctx.done:
	case <-x.ctx.parent.Done():
		x.ctx.cancel(x.ctx.parent.Err())
	}
	timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.decided {
		x.leftOver = true
		return outcome{err: x.ctx.tooLate()}
	}
	return x.outcome
}

func (x *exchange) run(c call) {
	o := outcome{err: errEnded}
	defer func() {
		if p := recover(); p != nil {
			o = outcome{err: panicked("the handler", p)}
		}
		x.decide(o)
	}()
	o = c.handle()
	if o.err != nil {
		_ = o.err.Error() // a typed nil may panic when it is read: then here, where that is caught
	}
}

// decide hands over the outcome, if somebody waits for it.
func (x *exchange) decide(o outcome) {
	x.mu.Lock()
	late := x.leftOver
	if !late {
		x.outcome, x.decided = o, true
	}
	x.mu.Unlock()
	if !late {
		x.ctx.cancel(context.Canceled)
		return
	}
	var p *panicError
	if errors.As(o.err, &p) {
		x.ctx.logger().Error(p, "a handler panicked after its call was over", "stack", p.stack)
	}
}

// tooLate is the failure of a handler that did not decide before its context ended.
func (c *callContext) tooLate() error {
	if c.expired() {
		return newFailure(http.StatusGatewayTimeout, fmt.Sprintf("the handler did not decide within %s", c.budget))
	}
	return newFailure(http.StatusServiceUnavailable, "the API server closed the connection before the answer")
}

// A panicError is a panic of a handler, or of a method of its types.
type panicError struct {
	what  string
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("%s panicked: %v", p.what, p.value) }

func panicked(what string, value any) error { return &panicError{what, value, string(debug.Stack())} }

// recovered, deferred, turns a panic into an error.
func recovered(what string, err *error) {
	if p := recover(); p != nil {
		*err = panicked(what, p)
	}
}
