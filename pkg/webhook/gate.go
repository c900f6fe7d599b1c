// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A gate is what every call of a server goes through: it counts calls, and turns away those for
// which there is no room. A hook that is mounted elsewhere has none.
type gate struct {
	auth               *authenticator
	maxCalls, maxBytes int64
	age                time.Duration
	connections        *connections

	stage    atomic.Int32
	calls    atomic.Int64 // in flight, or answered with a handler that is still busy
	waiting  atomic.Int64 // for an answer
	ousted   atomic.Int64 // of those, calls that do not count any more
	bodies   bodies
	bytes    atomic.Int64 // of bodies
	answered chan struct{}
	shed     sparingly
	unknown  sparingly // paths
	unread   sparingly // calls that are none, or were broken off
}

// The stages of a server.
const (
	starting int32 = iota
	serving
	leaving  // calls go on, and every answer is the last on its connection
	stopping // there are no new calls
)

func newGate(o *Options, auth *authenticator) *gate {
	return &gate{
		auth: auth, maxCalls: int64(o.MaxInFlight), maxBytes: o.MaxInFlightBytes, age: o.MaxConnectionAge,
		answered: make(chan struct{}, 1),
	}
}

// admit returns nil if the call has the credentials that are asked for.
func (g *gate) admit(r *http.Request) *refusal {
	if g == nil {
		return nil
	}
	return g.auth.admit(r)
}

// enter lets a call in, or returns why not. It reads nothing of the body.
func (x *exchange) enter(r *http.Request, refused *refusal) error {
	g := x.ctx.hook.gate
	if g == nil {
		return nil
	}
	x.conn = connectionOf(r.Context())
	if refused != nil {
		return refused
	}
	if x.isGone() { // streams that are reset as fast as they are opened take nobody's room
		return x.brokenOff(x.client.Err())
	}
	// First it is counted, then looks at the stage: a server that waits for the calls in flight
	// does it the other way round, so one of the two sees the other.
	x.held = true
	x.conn.hold()
	x.holders.Store(1)
	x.waits.Store(true)
	g.waiting.Add(1)
	switch {
	case g.calls.Add(1) > g.maxCalls && !g.oust(0):
		x.leave()
		return x.tooMuch(fmt.Sprintf("%d calls are in flight, which is the limit", g.maxCalls))
	case g.stage.Load() == stopping:
		x.leave()
		return turnedAway(http.StatusServiceUnavailable, "the server is stopping", 0)
	}
	return nil
}

// reserve counts n more bytes of memory for the body, if there may be as many.
func (x *exchange) reserve(n int64) error {
	g := x.ctx.hook.gate
	if g == nil {
		return nil
	}
	own := x.body.holds.Add(n)
	if all := g.bytes.Add(n); all > g.maxBytes && all > own && !g.oust(n) { // alone, a call may be as large as its hook allows
		return x.tooMuch(fmt.Sprintf("the bodies of the calls in flight have %d bytes, which is the limit", g.maxBytes))
	}
	return nil
}

// tooMuch is the failure of a call for which there is no room. The API server calls again after
// a second, up to ten times, unless that is all the time it has: then it would find nothing
// better to tell the user than that the time is over.
func (x *exchange) tooMuch(what string) error {
	wait := 1
	if x.ctx.budget <= time.Second {
		wait = never
	}
	return turnedAway(http.StatusTooManyRequests, "the webhook server is busy: "+what, wait)
}

const never = -1

// turnedAway is the failure of a call that was not read, or not to the end, with the seconds
// after which it can be made again.
func turnedAway(code int, message string, retryAfter int) *failure {
	f := newFailure(code, message)
	f.outcome = Shed
	if retryAfter != never {
		f.retryAfter = []string{fmt.Sprint(retryAfter)}
		f.status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	return f
}

// leave is the end of a call, for those who wait for the last and for what it held, unless its
// handler is left behind and goes on to hold that.
func (x *exchange) leave() {
	if x.held && !x.isTaken() {
		x.wasAnswered()
	}
	if x.held {
		x.conn.release()
	}
	x.drop()
}

// wasAnswered tells a server that waits for its last call.
func (x *exchange) wasAnswered() {
	if g := x.ctx.hook.gate; g != nil && x.waits.Swap(false) && g.waiting.Add(-1) == 0 && g.stage.Load() == stopping {
		tell(g.answered)
	}
}

// drop gives back what a call held, once those who hold it have all done so.
func (x *exchange) drop() {
	if x.held && x.holders.Add(-1) == 0 {
		g := x.ctx.hook.gate
		if x.ousted {
			g.ousted.Add(-1)
		} else {
			g.calls.Add(-1)
		}
		g.bytes.Add(-x.bytes)
	}
}

// isLast reports whether the connection is to be closed after an answer to a call of that time.
func (g *gate) isLast(c *connection, at time.Time) bool {
	return g.stage.Load() >= leaving || c != nil && !at.Before(c.expires)
}

var closeConnection = []string{"close"}

// endConnection has the answer say that it is the last on its connection, if it is.
func (x *exchange) endConnection(w http.ResponseWriter) {
	if g := x.ctx.hook.gate; g != nil && g.isLast(x.conn, x.ctx.start) {
		w.Header()["Connection"] = closeConnection
	}
}

// tell wakes up who waits at a channel with room for one.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
