// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

var (
	errGoexit   = errors.New("the handler ended its goroutine")
	errAnswered = errors.New("the answer was sent while the handler was running")
)

// await calls the handler and waits until it returns, panics or misses its deadline.
//
// Over HTTP/1.1, which the API server uses, the handler runs in the goroutine of the connection. For a small object,
// another goroutine would about double the cost of the call. If the handler misses its deadline, a timer hijacks the
// connection and answers. HTTP/2 does not allow that, so there the handler gets a goroutine of its own, which can keep
// running after the answer.
func (x *exchange) await(c call, w http.ResponseWriter, r *http.Request) outcome {
	deadline, _ := x.ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 {
		x.ctx.Expire()
		return outcome{err: x.ctx.TooLate()}
	}
	if r.ProtoMajor > 1 {
		return x.awaitGoroutine(c, left)
	}
	timer := time.AfterFunc(left, func() { x.answerOverrun(w) })
	defer timer.Stop()
	x.run(c, w)
	switch {
	case x.handler.state == hijacked:
		return outcome{err: errAnswered}
	case x.ctx.Expired():
		return outcome{err: x.ctx.TooLate()}
	}
	return x.handler.outcome
}

// answerOverrun answers for a handler that missed its deadline, if the connection can be hijacked.
// Otherwise the answer waits for the handler.
func (x *exchange) answerOverrun(w http.ResponseWriter) {
	x.ctx.Expire()
	run := &x.handler
	run.mu.Lock()
	if run.state != undecided {
		run.mu.Unlock()
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		run.state = hijacked
	}
	run.mu.Unlock()
	if err == nil {
		x.answerTo(conn, x.ctx.TooLate())
		x.place.Answered()
	}
}

// awaitGoroutine calls the handler in a goroutine of its own, and waits until the handler has ended or its deadline has
// passed.
func (x *exchange) awaitGoroutine(c call, left time.Duration) outcome {
	done := x.ctx.Done()
	x.place.Share()
	go func() {
		defer x.place.Drop()
		x.run(c, nil)
	}()
	timer := time.AfterFunc(left, x.ctx.Expire)
	defer timer.Stop()
	<-done
	run := &x.handler
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.state != decided {
		run.state = abandoned
		return outcome{err: x.ctx.TooLate()}
	}
	return run.outcome
}

// run calls the handler. If the handler ends the goroutine of the connection (runtime.Goexit) and w is not nil,
// run sends the answer.
func (x *exchange) run(c call, w http.ResponseWriter) {
	o := outcome{err: errGoexit}
	defer func() {
		if p := recover(); p != nil {
			o = outcome{err: reply.NewPanic("the handler", p)}
		}
		inTime := x.decide(o)
		if inTime && w != nil && o.err == errGoexit { //nolint:errorlint // it is never wrapped here
			x.answerGoexit(w)
		}
	}()
	o = c.handle()
	if o.err != nil {
		_ = o.err.Error() // a typed nil may panic here, where the panic is recovered
	}
}

// answerGoexit answers for a handler that ended its goroutine. It runs in that goroutine, in a deferred function.
func (x *exchange) answerGoexit(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		if answer := x.lateAnswer(errGoexit); answer != nil {
			reply.Write(w, http.StatusOK, answer)
		} else {
			x.fail(w, errGoexit)
		}
		return
	}
	x.answerTo(conn, errGoexit)
}

// answerTo answers a failed call on a hijacked connection.
func (x *exchange) answerTo(conn net.Conn, err error) {
	if answer := x.lateAnswer(err); answer != nil {
		reply.WriteTo(conn, http.StatusOK, answer)
		return
	}
	status := x.failed(err)
	reply.WriteTo(conn, int(status.Code), reply.Encode(status))
}

// decide stores the outcome of the handler. It reports whether the handler was in time.
func (x *exchange) decide(o outcome) (inTime bool) {
	run := &x.handler
	run.mu.Lock()
	if inTime = run.state == undecided; inTime {
		run.outcome, run.state = o, decided
	}
	run.mu.Unlock()
	x.ctx.Cancel(context.Canceled)
	if inTime {
		return true
	}
	var p *reply.Panic
	if errors.As(o.err, &p) {
		x.ctx.Logger().Error(p, "a handler panicked after its call was over", "stack", p.Stack)
	}
	return false
}
