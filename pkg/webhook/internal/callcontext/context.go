// SPDX-License-Identifier: Apache-2.0

// Package callcontext implements the context that a handler gets, with the deadline and the logger of the call.
package callcontext

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

// A Context is the context of a handler: the values of the HTTP request, the deadline of the
// call, and a logger with the fields of the call. It replaces context.WithTimeout and
// logr.NewContext. It creates its channel, its timer and its logger only on demand, since few
// handlers need them.
type Context struct {
	Parent   context.Context
	Start    time.Time
	Budget   time.Duration // from Start to the deadline, unless the parent ends earlier
	Fields   Fields
	log      *HookLog
	deadline time.Time

	mu     sync.Mutex
	err    error
	done   chan struct{}        // nil before the first call of Done
	detach func() bool          // stops waiting for the parent; nil before attach
	after  map[*func()]struct{} // functions to call when the context ends

	callLog atomic.Pointer[logr.Logger] // nil before the first call of Logger
}

// Fields are the fields of a call in log lines. They are zero before the request is read.
type Fields struct {
	UID             types.UID
	Kind            metav1.GroupVersionKind
	Operation       admissionv1.Operation
	Namespace, Name string
	DryRun          bool
}

// Describe sets Fields from the metadata of the request.
func (c *Context) Describe(m *review.Metadata) {
	c.Fields = Fields{m.UID, m.Kind, m.Operation, m.Namespace, m.Name, m.DryRun}
}

// Begin sets the values of a new context. The context ends with its parent. At the deadline, the caller must call
// Expire.
func (c *Context) Begin(parent context.Context, log *HookLog, start time.Time, budget time.Duration) {
	c.log, c.Parent, c.Start, c.Budget = log, parent, start, budget
	c.deadline = start.Add(budget)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(c.deadline) {
		c.deadline = earlier
	}
}

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context. It creates the channel at its first call.
func (c *Context) Done() <-chan struct{} {
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
func (c *Context) attach() {
	if c.err == nil && c.detach == nil {
		c.detach = context.AfterFunc(c.Parent, func() { c.Cancel(c.Parent.Err()) })
	}
}

// Err implements context.Context.
func (c *Context) Err() error {
	if err := c.Parent.Err(); err != nil {
		c.Cancel(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value implements context.Context. It creates the logger at its first use.
func (c *Context) Value(key any) any {
	if key == loggerKey {
		return c.Logger()
	}
	return c.Parent.Value(key)
}

func (c *Context) String() string { return "context of webhook " + c.log.Name }

// AfterFunc calls f in a goroutine of its own once the context has ended. Package context uses this method: without it,
// each context derived from this one would need a goroutine.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
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

// Cancel ends the context, unless it has ended.
func (c *Context) Cancel(err error) {
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

// Expire ends the context because its deadline passed.
func (c *Context) Expire() { c.Cancel(context.DeadlineExceeded) }

// Expired reports whether the context ended at a deadline.
func (c *Context) Expired() bool { return c.Err() == context.DeadlineExceeded } //nolint:errorlint // Err returns it unwrapped

// ErrHungUp is the failure of a call whose client closed the connection.
var ErrHungUp = reply.New(http.StatusServiceUnavailable, "the API server closed the connection before the answer")

// TooLate returns the failure of a handler that did not decide before its context ended.
func (c *Context) TooLate() error {
	if c.Expired() {
		return c.TimedOut("the handler did not decide")
	}
	return ErrHungUp
}

// TimedOut returns the failure of a call that missed its deadline. The argument what names the part that was late, such
// as "the handler did not decide". The message begins with the text of context.DeadlineExceeded, since alerts and
// Kubernetes' own conformance tests look for "deadline".
func (c *Context) TimedOut(what string) error {
	f := reply.New(http.StatusGatewayTimeout, fmt.Sprintf("%s: %s within %s", context.DeadlineExceeded, what, c.Budget))
	f.Cause = reply.TimedOut
	return f
}

// Logger returns the logger of the hook with the fields of the call.
func (c *Context) Logger() logr.Logger {
	if log := c.callLog.Load(); log != nil {
		return *log
	}
	log := c.log.in(c.Parent)
	if f := &c.Fields; f.UID != "" {
		log = log.WithValues("requestUID", reply.Clip(string(f.UID)), "gvk", reply.Clip(registration.KindText(f.Kind)),
			"operation", reply.Clip(string(f.Operation)), "namespace", reply.Clip(f.Namespace), "name", reply.Clip(f.Name))
	}
	c.callLog.Store(&log)
	return log
}

// LogsDecisions reports whether the logger logs at V(1).
func (c *Context) LogsDecisions() bool { return c.log.enabled(c.Parent) }
