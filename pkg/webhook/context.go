// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/registration"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A callContext is the context of a handler: the values of the HTTP request, the deadline of the
// call, and a logger with the fields of the call. It replaces context.WithTimeout and
// logr.NewContext. It creates its channel, its timer and its logger only on demand, since few
// handlers need them.
type callContext struct {
	log      *hookLog
	parent   context.Context
	budget   time.Duration // from start to deadline, unless the parent ends earlier
	start    time.Time
	deadline time.Time
	fields   logFields

	mu     sync.Mutex
	err    error
	done   chan struct{}        // nil before the first call of Done
	detach func() bool          // stops waiting for the parent; nil before attach
	after  map[*func()]struct{} // functions to call when the context ends

	callLog atomic.Pointer[logr.Logger] // nil before the first call of logger
}

// logFields are the fields of a call in log lines. They are zero before the request is read.
type logFields struct {
	uid             types.UID
	kind            metav1.GroupVersionKind
	operation       admissionv1.Operation
	namespace, name string
	dryRun          bool
}

// describe sets the log fields of the call.
func (c *callContext) describe(m *review.Metadata) {
	c.fields = logFields{m.UID, m.Kind, m.Operation, m.Namespace, m.Name, m.DryRun}
}

func (c *callContext) begin(parent context.Context, log *hookLog, start time.Time, budget time.Duration) {
	c.log, c.parent, c.start, c.budget = log, parent, start, budget
	c.deadline = start.Add(budget)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(c.deadline) {
		c.deadline = earlier
	}
}

func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		if c.done = make(chan struct{}); c.err != nil {
			close(c.done)
		}
		c.attach()
	}
	return c.done
}

// attach makes the context end with its parent. Before attach is called, Err checks the parent
// instead.
func (c *callContext) attach() {
	if c.err == nil && c.detach == nil {
		c.detach = context.AfterFunc(c.parent, func() { c.cancel(c.parent.Err()) })
	}
}

func (c *callContext) Err() error {
	if err := c.parent.Err(); err != nil {
		c.cancel(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *callContext) Value(key any) any {
	if key == loggerKey {
		return c.logger()
	}
	return c.parent.Value(key)
}

func (c *callContext) String() string { return "context of webhook " + c.log.name }

// AfterFunc is called by package context. Without it, each context derived from this one would need a
// goroutine.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
		c.attach()
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, pending := c.after[&f]
		delete(c.after, &f)
		return pending
	}
}

// cancel ends the context, unless it has ended.
func (c *callContext) cancel(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	if c.detach != nil {
		c.detach()
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}

// expire ends the context at its deadline.
func (c *callContext) expire() { c.cancel(context.DeadlineExceeded) }

func (c *callContext) expired() bool { return c.Err() == context.DeadlineExceeded } //nolint:errorlint // Err returns it unwrapped

var errHungUp = reply.New(http.StatusServiceUnavailable, "the API server closed the connection before the answer")

// tooLate is the failure of a handler that did not decide before its context ended.
func (c *callContext) tooLate() error {
	if c.expired() {
		return c.timedOut("the handler did not decide")
	}
	return errHungUp
}

// timedOut is the failure of a call that missed its deadline.
func (c *callContext) timedOut(what string) error {
	f := reply.New(http.StatusGatewayTimeout, fmt.Sprintf("%s within %s", what, c.budget))
	f.Cause = reply.TimedOut
	return f
}

// logger returns the logger of the hook with the fields of the call.
func (c *callContext) logger() logr.Logger {
	if log := c.callLog.Load(); log != nil {
		return *log
	}
	log := c.log.in(c.parent)
	if f := &c.fields; f.uid != "" {
		log = log.WithValues("requestUID", reply.Clip(string(f.uid)), "gvk", reply.Clip(registration.KindText(f.kind)),
			"operation", reply.Clip(string(f.operation)), "namespace", reply.Clip(f.namespace), "name", reply.Clip(f.name))
	}
	c.callLog.Store(&log)
	return log
}
