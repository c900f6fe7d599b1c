// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admitkit/admitkit/internal/wire"
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
	groups [4]string // the memory of UserInfo.Groups

	mu       sync.Mutex
	outcome  outcome
	decided  bool // there is an outcome
	leftOver bool // the call was answered without one: the handler was left behind
	taken    bool // its connection was taken over to do that

	client   context.Context // is done once the client went away
	observed *observedCall   // nil without observers
	http1    bool
	unread   bool // there is a body in the way of the next call
	kept     bool // and the connection is kept nevertheless
	reached  bool // the handler was called

	// What follows is of a call that came through the gate of a server.
	conn    *connection
	held    bool         // there are
	holders atomic.Int32 // of room: the call, and a handler with a goroutine of its own
	waits   atomic.Bool  // for an answer
	bytes   int64        // of memory for the body
	ousted  bool         // another has its place
	body    *reading     // as long as it is read
}

// An outcome is what a handler has decided, or why it did not.
type outcome struct {
	decision *review.Decision
	patch    patch.Patch // of a raw handler
	err      error
}

// A call is an exchange with a handler of one sort: typedCall or rawCall.
type call interface {
	wire.ObjectReader
	base() *exchange
	// accept is called once the request was read and is one for the hook. It may decide by
	// itself, and the handler is then not called.
	accept(*review.Request) (*review.Decision, error)
	// handle calls the handler, in a goroutine of its own.
	handle() outcome
	// changes returns the patch of what the handler admitted, who may have made it himself.
	changes(own patch.Patch) (patch.Patch, error)
}

func (x *exchange) base() *exchange { return x }

var (
	errEnded    = errors.New("the handler ended its goroutine")
	errAnswered = errors.New("the answer was sent while the handler was busy")
	errHungUp   = newFailure(http.StatusServiceUnavailable, "the API server closed the connection before the answer")
)

// await calls the handler and waits until it returns, panics or its time is up.
//
// Over HTTP/1.1, which is what the API server speaks to webhooks, the handler runs in the
// goroutine of the connection: another one would cost as much as everything else around a small
// object. Should the handler overrun its deadline, the connection is taken over and gets the
// answer from there. With HTTP/2 that cannot be done, so there the handler has a goroutine of
// its own, which is left behind.
func (x *exchange) await(c call, w http.ResponseWriter, r *http.Request) outcome {
	left := time.Until(x.ctx.deadline)
	if left <= 0 {
		x.ctx.expire()
		return outcome{err: x.ctx.tooLate()}
	}
	if r.ProtoMajor > 1 {
		return x.awaitApart(c, left)
	}
	timer := time.AfterFunc(left, func() { x.overrun(w) })
	defer timer.Stop()
	x.run(c, w)
	switch {
	case x.leftOver:
		return outcome{err: errAnswered}
	case x.ctx.expired():
		return outcome{err: x.ctx.tooLate()}
	}
	return x.outcome
}

// overrun answers for a handler that is still busy at its deadline, if the connection lets
// itself be taken over. Otherwise the answer waits for the handler.
func (x *exchange) overrun(w http.ResponseWriter) {
	x.ctx.expire()
	x.mu.Lock()
	if x.decided {
		x.mu.Unlock()
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	x.leftOver, x.taken = err == nil, err == nil
	x.mu.Unlock()
	if err == nil {
		failOn(conn, x.failed(x.ctx.tooLate()))
		x.wasAnswered()
	}
}

// answerNow answers with a failure from a goroutine that will not come back to do it.
func (x *exchange) answerNow(w http.ResponseWriter, failure error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		x.fail(w, failure)
		return
	}
	failOn(conn, x.failed(failure))
}

// awaitApart calls the handler in a goroutine of its own.
func (x *exchange) awaitApart(c call, left time.Duration) outcome {
	done := x.ctx.Done()
	x.holders.Add(1)
	go func() {
		defer x.drop()
		x.run(c, nil)
	}()
	timer := time.AfterFunc(left, x.ctx.expire)
	defer timer.Stop()
	<-done
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.decided {
		x.leftOver = true
		return outcome{err: x.ctx.tooLate()}
	}
	return x.outcome
}

// run calls the handler. If that ends its goroutine, which is the one that has to answer where
// there is a w, it answers.
func (x *exchange) run(c call, w http.ResponseWriter) {
	o := outcome{err: errEnded}
	defer func() {
		p := recover()
		if p != nil {
			o = outcome{err: panicked("the handler", p)}
		}
		x.decide(o)
		if o.err == errEnded && w != nil && !x.leftOver { //nolint:errorlint // it is this one
			x.answerNow(w, errEnded)
		}
	}()
	o = c.handle()
	if o.err != nil {
		_ = o.err.Error() // a typed nil may panic when it is read: then here, where that is caught
	}
}

// isTaken reports whether the call's connection was taken over, so that the answer is made
// by whoever did that.
func (x *exchange) isTaken() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.taken
}

// decide hands over the outcome, if somebody waits for it.
func (x *exchange) decide(o outcome) {
	x.mu.Lock()
	late := x.leftOver
	if !late {
		x.outcome, x.decided = o, true
	}
	x.mu.Unlock()
	x.ctx.cancel(context.Canceled)
	if !late {
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
		return c.timedOut("the handler did not decide")
	}
	return errHungUp
}

// timedOut is the failure of a call that something did not do in time.
func (c *callContext) timedOut(what string) error {
	f := newFailure(http.StatusGatewayTimeout, fmt.Sprintf("%s within %s", what, c.budget))
	f.outcome = TimedOut
	return f
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
