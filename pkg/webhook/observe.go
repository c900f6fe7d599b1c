// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// An Outcome is what came of a call.
type Outcome string

// The outcomes. All but the first three are failures to decide, to which the API server applies the
// failurePolicy; to Canceled only if it is still there and the request is.
const (
	Allowed  Outcome = "allowed"
	Mutated  Outcome = "mutated" // allowed, with a patch
	Denied   Outcome = "denied"
	Failed   Outcome = "failed"    // unreadable, of the wrong kind, or the handler returned an error
	Panicked Outcome = "panicked"  // the handler did, or a method of its types
	TimedOut Outcome = "timed_out" // the handler did not decide, or the body not arrive, in time, or before the client had waited for half of it
	Shed     Outcome = "shed"      // turned away before it was read to the end: too much at once, or stopping
	Refused  Outcome = "refused"   // turned away before it was read: without valid credentials
	Canceled Outcome = "canceled"  // the client went away before that: it restarts, or a user gives up
)

// An Observation describes a call that has ended. Fields that could not be read from the request are zero.
type Observation struct {
	Hook      string
	Mutating  bool
	UID       types.UID
	Kind      metav1.GroupVersionKind
	Operation admissionv1.Operation
	Namespace string
	Name      string
	DryRun    bool

	Outcome Outcome
	// Code is that of the HTTP answer for a failure, that of the denial for a denial, else 200.
	Code int32
	// Err is why the call failed, nil after a decision.
	Err error
	// Duration runs from the headers of the request until the answer is made.
	Duration time.Duration
	// BodyBytes is the size of the request's body, PatchBytes and PatchOperations those of the
	// patch.
	BodyBytes, PatchBytes, PatchOperations int
}

// An Observer is told of the calls of a hook, for metrics and traces: see packages metrics and
// tracing. It is called by many goroutines at once.
type Observer interface {
	// Begin is called before the call is read. The context it returns, derived from ctx, is
	// the parent of the handler's. The function it returns is called once, when the answer is
	// made and before it is sent, and must not keep the Observation; it may be nil. It may be called in
	// another goroutine than Begin: a handler that overruns its deadline is busy in that one.
	// r is for its headers; its body must not be read. Of a call without valid credentials there
	// are no headers: a stranger must not choose which trace is continued, or whether it is kept.
	Begin(ctx context.Context, h *Hook, r *http.Request) (context.Context, func(*Observation))
}

// A ConnectionObserver is an [Observer] that is also told of connections that came to nothing.
type ConnectionObserver interface {
	// HandshakeFailed is called for each TLS handshake that failed; class is one of few words,
	// fit for a label.
	HandshakeFailed(class string)
}

// An observedCall is the state of the observers of one call.
type observedCall struct {
	ends      []func(*Observation)
	bodyBytes int
	told      atomic.Bool
}

// WithObserver returns a hook that also tells these observers of its calls.
func (h *Hook) WithObserver(observers ...Observer) *Hook {
	c := *h
	c.observers = slices.Concat(h.observers, observers)
	return &c
}

// hidesFromServer reports whether o is the marker of package internal/unobserved.
func hidesFromServer(o Observer) bool {
	_, ok := o.(interface{ HidesFromServer() })
	return ok
}

// observe tells observers that a call begins, and returns the context for it.
func (h *Hook) observe(x *exchange, r *http.Request) context.Context {
	ctx := r.Context()
	if len(h.observers) == 0 {
		return ctx
	}
	x.observed = &observedCall{}
	for _, observer := range h.observers {
		ctx = x.observed.begin(ctx, observer, h, r)
	}
	return ctx
}

// visible is the request as observers may see it.
func visible(r *http.Request, refused *refusal) *http.Request {
	if refused == nil {
		return r
	}
	c := *r
	c.Header, c.Trailer = http.Header{}, nil
	return &c
}

func (o *observedCall) begin(ctx context.Context, observer Observer, h *Hook, r *http.Request) (next context.Context) {
	next = ctx
	defer survive(ctx)
	own, end := observer.Begin(ctx, h, r)
	if own != nil {
		next = own
	}
	if end != nil {
		o.ends = append(o.ends, end)
	}
	return next
}

// survive, deferred, keeps a call alive whose observer panics.
func survive(ctx context.Context) {
	if p := recover(); p != nil {
		err := &panicError{"an observer of calls", p, string(debug.Stack())}
		contextLogger(ctx).Error(err, "an observer of calls panicked", "stack", err.stack)
	}
}

// tell tells observers what came of a call, once: those that were told first that it begins,
// last.
func (x *exchange) tell(c Observation) {
	if o := x.observed; o != nil && !o.told.Swap(true) {
		told := c // which is in memory of its own only here
		o.tell(x, &told)
	}
}

func (o *observedCall) tell(x *exchange, c *Observation) {
	h, a := x.ctx.hook, &x.ctx.about
	c.Hook, c.Mutating = h.Name(), h.reg.mutating
	c.UID, c.Kind, c.Operation, c.Namespace, c.Name, c.DryRun = a.uid, a.kind, a.operation, a.namespace, a.name, a.dryRun
	c.BodyBytes, c.Duration = o.bodyBytes, time.Since(x.ctx.start)
	for _, end := range slices.Backward(o.ends) {
		func() {
			defer survive(x.ctx.parent)
			end(c)
		}()
	}
}

// succeeded logs what was decided, and tells observers of it. scratch is memory behind whose
// end the patch may be written to see how long it is.
func (x *exchange) succeeded(d *review.Decision, p patch.Patch, scratch []byte) {
	logs := x.ctx.hook.logsDetails(x.ctx.parent)
	if !logs && x.observed == nil {
		return
	}
	c := Observation{Outcome: Allowed, Code: http.StatusOK}
	var values []any
	switch denial := d.Denial(); {
	case denial != nil:
		c.Outcome, c.Code = Denied, denial.Code
		values = []any{"code", denial.Code, "reason", denial.Reason}
	case len(p) > 0:
		c.Outcome, c.PatchOperations = Mutated, len(p)
	}
	if logs {
		x.ctx.logger().V(1).Info(string(c.Outcome), append(values, "duration", time.Since(x.ctx.start).String())...)
	}
	if x.observed != nil && c.Outcome == Mutated {
		c.PatchBytes = len(p.AppendJSON(scratch)) - len(scratch)
	}
	x.tell(c)
}

// outcomeOf classifies a failure to decide.
func outcomeOf(err error) Outcome {
	var own *failure
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return Panicked
	case errors.As(err, &own):
		return cmp.Or(own.outcome, Failed)
	}
	return Failed
}
