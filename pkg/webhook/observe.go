// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/callcontext"
	"github.com/admitkit/admitkit/pkg/webhook/internal/clientauth"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// An Outcome is the result of a call.
type Outcome string

// The outcomes. After each but the first three, there is no decision, and the API server applies the failurePolicy. After
// Canceled, the API server may no longer run, and the user's request may have ended.
const (
	Allowed  Outcome = "allowed"
	Mutated  Outcome = "mutated" // allowed, with a patch
	Denied   Outcome = "denied"
	Failed   Outcome = "failed"    // the request was not valid, or the handler returned an error
	Panicked Outcome = "panicked"  // the handler or a method of its types panicked
	TimedOut Outcome = "timed_out" // the handler or the body took too long, or the client disconnected after half of the timeout
	Shed     Outcome = "shed"      // the server was overloaded or stopping
	Refused  Outcome = "refused"   // the call had no valid credentials
	Canceled Outcome = "canceled"  // the client disconnected early: the API server restarts, or the user cancels
)

// An Observation describes a call that has ended. Fields that could not be read from the request are
// zero.
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
	// Mode is the mode of the call; empty means Enforce. Withheld is the outcome that the mode Warn or Shadow kept from
	// the API server: Denied, Mutated or a failure. It is empty if nothing was withheld.
	Mode     Mode
	Withheld Outcome
	// Code is the HTTP code of a failure, the code of a denial, or else 200.
	Code int32
	// Err is the error of a failed call, nil after a decision. With the mode Warn or Shadow, such a call is admitted.
	Err error
	// Duration is the time from the headers of the request until the answer was encoded.
	Duration time.Duration
	// BodyBytes is the size of the request body, in bytes, or 0 if it was not read to its end. AnswerBytes is the size of
	// the answer, or 0 for a call that was Refused.
	BodyBytes, AnswerBytes int
	// PatchBytes is the size of the patch, in bytes, and PatchOperations its number of operations.
	PatchBytes, PatchOperations int

	texts *texts
}

// AppendBody appends the request body to dst and returns the result. The body may hold secrets. AppendBody appends nothing
// if the body was not read to its end. It appends nothing after the observer has returned either, because later calls reuse
// the memory of the body.
func (o *Observation) AppendBody(dst []byte) []byte { return o.texts.append(dst, false) }

// AppendAnswer appends the answer to dst and returns the result. The answer is an AdmissionReview, or the metav1.Status of
// a failure. AppendAnswer appends nothing for a call that was Refused, or once the observer has returned.
func (o *Observation) AppendAnswer(dst []byte) []byte { return o.texts.append(dst, true) }

// texts has the body and the answer of a call. Later calls reuse their memory, so it has them only while observers run.
type texts struct {
	mu           sync.Mutex
	body, answer []byte
}

func (t *texts) append(dst []byte, answer bool) []byte {
	if t == nil {
		return dst
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if answer {
		return append(dst, t.answer...)
	}
	return append(dst, t.body...)
}

// set sets the body and the answer. With nil, append appends nothing.
func (t *texts) set(body, answer []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.body, t.answer = body, answer
}

// An Observer sees the calls of a hook, for metrics and traces: see packages metrics and tracing. An
// Observer must be safe for concurrent use.
type Observer interface {
	// Begin is called before the body is read. It returns a context derived from ctx, from which the
	// handler's context is derived. The returned function may be nil. It is called once, after the
	// answer is encoded and before the answer is sent, perhaps in a different goroutine. The function
	// must not keep the Observation. Begin may read the headers of r, but not its body. For a call
	// without valid credentials, r has no headers, so that the client cannot choose which trace is
	// continued.
	Begin(ctx context.Context, h *Hook, r *http.Request) (context.Context, func(*Observation))
}

// A ConnectionObserver sees failed TLS handshakes. To use one, implement it on an [Observer] in [Options.Observers].
type ConnectionObserver interface {
	// HandshakeFailed is called for each TLS handshake that failed. class is one of a few constants, so it can
	// be a metric label.
	HandshakeFailed(class string)
}

// WithObserver returns a hook that also reports its calls to these observers.
func (h *Hook) WithObserver(observers ...Observer) *Hook {
	c := *h
	c.observers = slices.Concat(h.observers, observers)
	return &c
}

// hidesFromServer reports whether o is an unobserved.Marker. A server adds no observers to a hook with such a marker.
func hidesFromServer(o Observer) bool {
	_, ok := o.(interface{ HidesFromServer() })
	return ok
}

// An observedCall is the state of the observers of one call.
type observedCall struct {
	ends     []func(*Observation)
	memory   [3]func(*Observation) // the array of ends, large enough for most hooks
	body     []byte                // nil until it is read
	answer   []byte                // nil until it is reported
	texts    texts
	reported atomic.Bool
	result   Observation // zero until it is reported
}

// observe reports the beginning of a call to the observers, and returns the context for it.
func (x *exchange) observe(r *http.Request) context.Context {
	ctx := r.Context()
	if len(x.hook.observers) == 0 {
		return ctx
	}
	x.observed = &observedCall{}
	x.observed.ends = x.observed.memory[:0]
	for _, observer := range x.hook.observers {
		ctx = x.observed.begin(ctx, observer, x.hook, r)
	}
	return ctx
}

// observable returns the request that observers may see. It has no headers if the call was refused.
func observable(r *http.Request, refusal *clientauth.Refusal) *http.Request {
	if refusal == nil {
		return r
	}
	c := *r
	c.Header, c.Trailer = http.Header{}, nil
	return &c
}

func (o *observedCall) begin(ctx context.Context, observer Observer, h *Hook, r *http.Request) (next context.Context) {
	next = ctx
	defer recoverObserver(ctx)
	own, end := observer.Begin(ctx, h, r)
	if own != nil {
		next = own
	}
	if end != nil {
		o.ends = append(o.ends, end)
	}
	return next
}

// recoverObserver logs the panic of an observer, so that the call continues. Defer it.
func recoverObserver(ctx context.Context) {
	if p := recover(); p != nil {
		err := reply.NewPanic("an observer of calls", p)
		callcontext.LoggerIn(ctx).Error(err, "an observer of calls panicked", "stack", err.Stack)
	}
}

// report reports the result of the call to the observers. Only the first result counts.
func (x *exchange) report(result Observation, answer []byte) {
	if o := x.observed; o != nil && !o.reported.Swap(true) {
		o.result, o.answer = result, answer
		o.end(x)
	}
}

// end calls the observers in the reverse order of begin.
func (o *observedCall) end(x *exchange) {
	f, result := &x.ctx.Fields, &o.result
	result.Hook, result.Mutating = x.hook.Name(), x.hook.reg.Mutating
	result.UID, result.Kind, result.Operation = f.UID, f.Kind, f.Operation
	result.Namespace, result.Name, result.DryRun = f.Namespace, f.Name, f.DryRun
	result.Mode, result.Withheld = x.effect.mode, x.effect.withheld
	if x.effect.err != nil {
		result.Err = x.effect.err
	}
	result.BodyBytes, result.AnswerBytes, result.Duration = len(o.body), len(o.answer), time.Since(x.ctx.Start)
	result.texts = &o.texts
	o.texts.set(o.body, o.answer)
	defer o.texts.set(nil, nil)
	for _, end := range slices.Backward(o.ends) {
		func() {
			defer recoverObserver(x.ctx.Parent)
			end(result)
		}()
	}
}

// succeeded logs a decision and reports it to the observers. It returns the answer, perhaps in other memory.
func (x *exchange) succeeded(d *review.Decision, p patch.Patch, answer []byte) []byte {
	logs := x.ctx.LogsDecisions()
	if !logs && x.observed == nil {
		return answer
	}
	result := Observation{Outcome: Allowed, Code: http.StatusOK}
	var values []any
	switch denial := d.Denial(); {
	case denial != nil:
		result.Outcome, result.Code = Denied, denial.Code
		values = []any{"code", denial.Code, "reason", denial.Reason}
	case len(p) > 0:
		result.Outcome, result.PatchOperations = Mutated, len(p)
	}
	if logs {
		x.ctx.Logger().V(1).Info(string(result.Outcome), append(values, "duration", time.Since(x.ctx.Start).String())...)
	}
	if x.observed != nil && result.Outcome == Mutated {
		measured := p.AppendJSON(answer) // only to measure its size
		result.PatchBytes = len(measured) - len(answer)
		answer = measured[:len(answer)]
	}
	x.report(result, answer)
	return answer
}
