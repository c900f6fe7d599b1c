// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/admitkit/admitkit/internal/wire"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/body"
	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// An exchange is one call of a hook and its answer.
//
// A handler may keep everything it gets: the context, the Request, the object. So all of these are in the exchange,
// which is never reused. Calls reuse only their buffers. These hold the documents of a Request until the handler
// returns. The documents are removed from the Request before their memory is reused. If the handler is still running
// after the answer, that memory is not reused.
//
// Channels and timers are not reused either: a test with a fake clock (testing/synctest) must not share them
// with other tests.
type exchange struct {
	hook     *Hook
	ctx      callcontext.Context
	timeout  time.Duration   // parameter of the API server, 0 if it sent none
	wire     *review.Request // the request that is being decoded; otherwise nil
	docs     documents
	groups   [4]string // memory for UserInfo.Groups
	client   clientConn
	place    server.Place
	handler  handlerRun
	observed *observedCall // nil without observers
	effect   effect
}

// A clientConn is the client's side of a call.
type clientConn struct {
	ctx   context.Context // ends when the client goes away
	http1 bool
	conn  *server.Connection // nil outside of a server
	rest  restOfBody
}

// isGone reports whether the client went away. An expired deadline, which middleware may have set,
// does not count.
func (c *clientConn) isGone() bool { return errors.Is(c.ctx.Err(), context.Canceled) }

// A restOfBody says what happens to the unread rest of a request body after the answer.
type restOfBody int

const (
	noRest        restOfBody = iota // the body was read to its end, or does not delay the next call
	restThenClose                   // it is discarded, and the answer closes the connection
	restThenNext                    // it is discarded, and the next call can follow
	restEvicted                     // it is discarded for a short time only, because the server evicted the body
)

// A handlerRun is the state of the handler during one call.
type handlerRun struct {
	called  bool
	mu      sync.Mutex
	state   answerState
	outcome outcome // if state is decided
}

// An answerState says which goroutine sends the answer.
type answerState int

const (
	undecided answerState = iota // no goroutine yet: the handler has not returned
	decided                      // the goroutine of the call, with the outcome of the handler
	abandoned                    // the goroutine of the call, because the handler missed its deadline
	hijacked                     // a timer's goroutine, which hijacked the connection when the handler missed its deadline
)

// currentState returns the state of the answer.
func (r *handlerRun) currentState() answerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// leftBehind reports whether the call was answered at its deadline, while the handler was still running.
func (x *exchange) leftBehind() bool {
	f := x.handler.currentState()
	return f == abandoned || f == hijacked
}

// An outcome is the decision of a handler, or its error.
type outcome struct {
	decision *review.Decision
	patch    patch.Patch // of a raw handler
	err      error
}

// A call is an exchange with one kind of handler: typedCall or rawCall.
type call interface {
	wire.ObjectReader
	base() *exchange
	// accept is called after the request was read and checked. If it returns a decision, the handler
	// is not called.
	accept(*review.Request) (*review.Decision, error)
	// handle calls the handler.
	handle() outcome
	// changes returns the patch of an admitted object. A raw handler returns its own patch.
	changes(own patch.Patch) (patch.Patch, error)
}

func (x *exchange) base() *exchange { return x }

// buffers is memory that calls reuse. No handler gets this memory, so values that a handler keeps never change. See
// exchange for when it is reused.
type buffers struct {
	body, answer []byte
	large        []byte         // instead of body, if the body is large
	wire         review.Request // decoded from the body
	reading      server.Reading
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

// hold stores the memory of a body, to be reused after the call.
func (b *buffers) hold(data []byte) {
	if cap(data) > body.MaxSmallBytes {
		b.large = data
		return
	}
	b.body = data
}

// abandon leaves the memory of the body to a handler that is still running.
func (b *buffers) abandon() { b.body, b.large = nil, nil }

func (b *buffers) release() {
	b.wire = review.Request{}
	body.Release(b.large)
	b.large = nil
	if cap(b.answer) > body.MaxSmallBytes {
		b.answer = nil
	}
	bufferPool.Put(b)
}
