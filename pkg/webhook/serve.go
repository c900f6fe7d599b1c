// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// ServeHTTP answers one AdmissionReview. A decision is HTTP 200 with a review of the version
// received; a failure to decide is an HTTP error with a metav1.Status, of which the API
// server shows the message to the user and to which it applies the failurePolicy.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now() // reading counts, too
	c := h.newCall()
	x := c.base()
	x.http1 = r.ProtoMajor == 1
	x.unread = h.gate != nil && leavesBody(r)
	x.client = r.Context()
	refused := h.gate.admit(r)
	x.ctx.begin(h.observe(x, visible(r, refused)), h, start, h.budget(timeoutOf(r.URL)))
	err := h.Check()
	if err != nil {
		err = newFailure(http.StatusInternalServerError, "the registration of the hook is invalid: "+err.Error())
	} else {
		err = x.enter(r, refused)
	}
	if err != nil {
		x.turnAway(w, r, err)
	} else {
		err = h.serve(w, r, c)
	}
	switch {
	case err == nil || !x.unread:
	case x.kept:
		x.conn.keep(w, r)
	case x.ousted:
		discard(w, r, discardOthers)
	default:
		discard(w, r, discardLast)
	}
}

// turnAway answers a call that is not to be read.
func (x *exchange) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		x.tell(Observation{Outcome: Refused, Code: refused.status.Code, Err: err})
		x.endConnection(w)
		x.unread = false // it is dealt with there
		x.ctx.hook.gate.auth.refuse(w, r, refused)
	default:
		x.kept = outcomeOf(err) == Shed && isKept(r)
		x.fail(w, err)
	}
}

// serve answers a call that was let in, and returns why it failed.
func (h *Hook) serve(w http.ResponseWriter, r *http.Request, c call) error {
	x := c.base()
	defer x.leave()
	b := bufferPool.Get().(*buffers)
	err := h.answer(w, r, c, b)
	if x.leftOver { // the handler goes on with the documents
		b.lose()
	} else {
		x.docs.end()
	}
	switch {
	case err == nil:
		x.endConnection(w)
		if !write(w, http.StatusOK, b.answer) {
			b.answer = nil
		}
	case errors.Is(err, errAnswered):
	default:
		x.kept = outcomeOf(err) == Shed && isKept(r) && !x.ousted
		x.fail(w, err)
	}
	b.release()
	return err
}

// answer reads the call, has the handler decide, and writes the answer into the buffers.
func (h *Hook) answer(w http.ResponseWriter, r *http.Request, c call, b *buffers) error {
	if err := h.read(w, r, c, b); err != nil {
		return err
	}
	x := c.base()
	d, p, err := h.decide(c, w, r, &b.wire)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) && x.ctx.expired():
		return x.ctx.tooLate()
	default:
		return err
	}
	if h.reg.mutating {
		b.answer = review.AppendMutating(b.answer[:0], &b.wire, d, p)
	} else {
		b.answer = review.AppendValidating(b.answer[:0], &b.wire, d)
	}
	x.succeeded(d, p, b.answer)
	return nil
}

// read reads the request, the object included, and checks that it is one for the hook.
func (h *Hook) read(w http.ResponseWriter, r *http.Request, c call, b *buffers) error {
	memory := b.body
	if h.raw {
		memory = nil
	}
	x := c.base()
	if h.gate != nil {
		x.body = &b.reading
	}
	body, err := x.readBody(w, r, memory, h.bodyLimit())
	if err != nil {
		return err
	}
	if !h.raw {
		b.hold(body)
	}
	if x.observed != nil {
		x.observed.bodyBytes = len(body)
	}
	b.wire.UserInfo.Groups = x.groups[:0]
	if err := received.Review(&b.wire, body, c); err != nil {
		return err
	}
	x.ctx.know(&b.wire.Metadata)
	x.docs.begin(&b.wire)
	return h.checkHandled(&b.wire)
}

// decide returns what the handler decides, and the patch of what it changed.
func (h *Hook) decide(c call, w http.ResponseWriter, r *http.Request, wire *review.Request) (*review.Decision, patch.Patch, error) {
	if d, err := c.accept(wire); d != nil || err != nil {
		return d, nil, err
	}
	c.base().reached = true
	o := c.base().await(c, w, r)
	if o.err != nil || !o.decision.Allowed() {
		return o.decision, nil, o.err
	}
	p, err := c.changes(o.patch)
	return o.decision, p, err
}

// timeoutOf returns the parameter in which the API server says how long it waits.
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

// budget is the time the handler gets: what the API server allows, less a tenth (100 ms at
// least, 1 s at most) to send the answer, since the parameter is rounded up to a whole second.
// A missing or unreadable parameter leaves the timeoutSeconds of the registration; more than
// the 30 s that a registration may ask for is not believed.
func (h *Hook) budget(parameter string) time.Duration {
	allowed, err := time.ParseDuration(parameter)
	if limit := h.reg.timeout(); err != nil || allowed <= 0 {
		allowed = limit
	}
	allowed = min(allowed, 30*time.Second)
	margin := min(max(allowed/10, 100*time.Millisecond), time.Second)
	return max(allowed-margin, allowed/2)
}
