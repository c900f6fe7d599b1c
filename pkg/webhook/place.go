// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/clientauth"
	"github.com/admitkit/admitkit/pkg/webhook/internal/ratelog"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
	"github.com/admitkit/admitkit/pkg/webhook/internal/server"
)

// A host is the state that the hooks of one Server share. A hook that is mounted elsewhere has no
// host.
type host struct {
	gate *server.Gate
	auth *clientauth.Authenticator

	// Failures that any client can provoke.
	turnedAway  ratelog.Logger
	unknownPath ratelog.Logger
	invalidCall ratelog.Logger // calls that failed before the handler was called
}

// authenticate returns nil if the call may pass.
func (h *host) authenticate(r *http.Request) *clientauth.Refusal {
	if h == nil {
		return nil
	}
	return h.auth.Check(r)
}

// enter takes a slot for the call, or returns the failure if the server has no room.
func (x *exchange) enter(h *host) error {
	if h == nil {
		return nil
	}
	if x.client.isGone() { // streams that are reset at once must not take a slot
		return x.incompleteBody(x.client.ctx.Err())
	}
	if err := x.place.Enter(h.gate, x.client.conn); err != nil {
		return x.turnAway(err)
	}
	return nil
}

// leave releases the slot and the memory of the call after its answer. If the handler is still running then, they are
// released when it returns.
func (x *exchange) leave() {
	if x.handler.currentState() == hijacked {
		x.place.LeaveConnection()
	} else {
		x.place.Leave()
	}
}

// turnAway returns the failure of a call for an error of Place.Enter or Place.Read.
func (x *exchange) turnAway(err error) error {
	var overload *server.Overload
	switch {
	case errors.As(err, &overload):
		return x.tooBusy(overload.Error())
	case errors.Is(err, server.ErrStopping):
		return reply.TurnAway(http.StatusServiceUnavailable, err.Error(), 0)
	}
	return err
}

// tooBusy returns the failure for a call that finds no room. The API server repeats such a call after a second, up to
// ten times. If x.ctx.Budget is at most a second, the failure has no Retry-After, so that the user sees this failure
// and not a timeout.
func (x *exchange) tooBusy(reason string) error {
	wait := 1
	if x.ctx.Budget <= time.Second {
		wait = reply.Never
	}
	return reply.TurnAway(http.StatusTooManyRequests, "the webhook server is busy: "+reason, wait)
}

// tooSlow returns the failure for a call whose body was evicted.
func (x *exchange) tooSlow() error {
	return x.tooBusy("other calls are waiting, and the body of this one arrives too slowly")
}

// closeIfDue makes the answer close its connection if the server is stopping or the connection is
// too old.
func (x *exchange) closeIfDue(w http.ResponseWriter) {
	if h := x.hook.host; h != nil && h.gate.ClosesAfter(x.client.conn, x.ctx.Start) {
		reply.CloseConnection(w)
	}
}

// incompleteBody returns the failure for a call whose body ended too early.
func (x *exchange) incompleteBody(err error) error {
	f := reply.New(http.StatusBadRequest, "cannot read the body: "+err.Error())
	if x.client.isGone() || !x.client.http1 && isReset(err) {
		f.Cause = reply.Canceled
	}
	return f
}

// isReset reports whether err is the end of an HTTP/2 stream or connection while a body is read. The
// context of the request ends a moment later, and net/http does not export the types of the errors.
func isReset(err error) bool {
	text := err.Error()
	return text == "client disconnected" || strings.HasPrefix(text, "stream error: ") && strings.HasSuffix(text, "received from peer")
}
