// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook/internal/clientauth"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// ServeHTTP answers one AdmissionReview. A decision is HTTP 200 with a review of the version
// received. A failure to decide is an HTTP error with a metav1.Status: the API server shows its
// message to the user and applies the failurePolicy.
//
// ServeHTTP uses only three fields of the registration: timeoutSeconds, sideEffects and rules. If one of them or the
// handler's type is invalid, every call fails. Errors in other fields do not make calls fail. Without rules, it serves
// every request whose kind the hook accepts.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now() // before the body is read
	c := h.newCall()
	x := c.base()
	x.hook = h
	x.client = clientConn{ctx: r.Context(), http1: r.ProtoMajor == 1}
	if h.host != nil {
		x.client.conn = server.ConnectionOf(r.Context())
		if reply.HasBody(r) {
			x.client.rest = restThenClose
		}
	}
	x.timeout = parseTimeout(timeoutOf(r.URL))
	refusal := h.host.authenticate(r)
	x.ctx.Begin(x.observe(observable(r, refusal)), &h.log, start, h.budget(x.timeout))
	switch err := h.errs.serving; {
	case err != nil:
		x.refuse(w, r, reply.New(http.StatusInternalServerError, "the registration of the hook is invalid: "+err.Error()))
	case refusal != nil:
		x.unauthenticated(w, r, refusal)
	default:
		if err := x.enter(h.host); err != nil {
			x.refuse(w, r, err)
		} else {
			h.serve(w, r, c)
		}
	}
	x.discardRest(w, r)
}

// refuse answers a call with the failure err, before its body was read.
func (x *exchange) refuse(w http.ResponseWriter, r *http.Request, err error) {
	x.keepConnection(r, err)
	x.fail(w, err)
}

// unauthenticated answers a call without valid credentials.
func (x *exchange) unauthenticated(w http.ResponseWriter, r *http.Request, refusal *clientauth.Refusal) {
	x.report(Observation{Outcome: Refused, Code: refusal.Status.Code, Err: refusal}, nil)
	x.closeIfDue(w)
	x.client.rest = noRest // Refuse discards it
	x.hook.host.auth.Refuse(w, r, refusal)
}

// serve reads a call, calls the handler and sends the answer.
func (h *Hook) serve(w http.ResponseWriter, r *http.Request, c call) {
	x := c.base()
	defer x.leave()
	b := bufferPool.Get().(*buffers)
	err := h.answer(w, r, c, b)
	if x.leftBehind() { // the handler still uses the documents
		b.abandon()
	} else {
		x.docs.end()
	}
	switch {
	case err == nil:
		x.closeIfDue(w)
		if x.effect.isLenient() {
			x.closeIfLate(w)
		}
		if !reply.Write(w, http.StatusOK, b.answer) {
			b.answer = nil
		}
	case errors.Is(err, errAnswered):
	default:
		x.keepConnection(r, err)
		x.fail(w, err)
	}
	b.release()
}

// answer reads the call, calls the handler, and encodes the answer into the buffers.
func (h *Hook) answer(w http.ResponseWriter, r *http.Request, c call, b *buffers) error {
	if err := h.read(w, r, c, b); err != nil {
		return err
	}
	x := c.base()
	if err := x.setMode(&b.wire); err != nil {
		return err
	}
	d, p, err := h.decide(c, w, r, &b.wire)
	if errors.Is(err, context.DeadlineExceeded) && x.ctx.Expired() {
		err = x.ctx.TooLate()
	}
	switch {
	case errors.Is(err, errAnswered):
		return err
	case x.effect.isLenient():
		d, p = x.lenient(d, p, err)
	case err != nil:
		return err
	}
	if h.reg.Mutating {
		b.answer = review.AppendMutating(b.answer[:0], &b.wire, d, p)
	} else {
		b.answer = review.AppendValidating(b.answer[:0], &b.wire, d)
	}
	b.answer = x.succeeded(d, p, b.answer)
	return nil
}

// read reads and decodes the request.
func (h *Hook) read(w http.ResponseWriter, r *http.Request, c call, b *buffers) error {
	memory := b.body
	if h.raw {
		memory = nil
	}
	x := c.base()
	data, err := x.readBody(w, r, &b.reading, memory, h.bodyLimit())
	if err != nil {
		return err
	}
	if !h.raw {
		b.hold(data)
	}
	if x.observed != nil {
		x.observed.body = data
	}
	b.wire.UserInfo.Groups = x.groups[:0]
	x.wire = &b.wire
	err = received.Review(&b.wire, data, c)
	x.wire = nil
	if err != nil {
		return err
	}
	x.ctx.Describe(&b.wire.Metadata)
	x.docs.begin(&b.wire)
	return nil
}

// decide returns the decision of the handler and the patch of its changes. It fails if the hook does not handle the
// request.
func (h *Hook) decide(c call, w http.ResponseWriter, r *http.Request, wire *review.Request) (*review.Decision, patch.Patch, error) {
	if err := h.reg.CheckHandled(h.kinds, wire); err != nil {
		return nil, nil, err
	}
	if h.admitsUnseen(wire) {
		return review.Allow(), nil, nil
	}
	if d, err := c.accept(wire); d != nil || err != nil {
		return d, nil, err
	}
	c.base().handler.called = true
	o := c.base().await(c, w, r)
	if o.err != nil || !o.decision.Allowed() {
		return o.decision, nil, o.err
	}
	p, err := c.changes(o.patch)
	return o.decision, p, err
}

// timeoutOf returns the timeout parameter that the API server adds to the URL, or "".
func timeoutOf(u *url.URL) string {
	if q := u.RawQuery; strings.Contains(q, "%") || strings.Contains(q, "+") || strings.Contains(q, ";") {
		return u.Query().Get("timeout")
	}
	for rest := u.RawQuery; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if name, value, _ := strings.Cut(pair, "="); name == "timeout" {
			return value
		}
	}
	return ""
}

// parseTimeout returns the duration of a timeout parameter, or zero if it is not a positive duration.
func parseTimeout(parameter string) time.Duration {
	if parameter == "" {
		return 0
	}
	timeout, err := time.ParseDuration(parameter)
	if err != nil {
		return 0
	}
	return max(timeout, 0)
}

// budget returns the time for the handler: the timeout of the API server minus the time to send the answer.
// That time is a tenth of the timeout, but at least 100 ms and at most 1 s. The API server rounds its parameter
// up to a whole second. If timeout is zero, the timeoutSeconds of the registration counts. No registration may
// ask for more than 30 s, so a longer timeout is cut to 30 s.
func (h *Hook) budget(timeout time.Duration) time.Duration {
	allowed := min(cmp.Or(timeout, h.reg.Timeout()), 30*time.Second)
	margin := min(max(allowed/10, 100*time.Millisecond), time.Second)
	return max(allowed-margin, allowed/2)
}
