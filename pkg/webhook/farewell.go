// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// farewell is sent over an idle connection before it is closed.
var farewell = func() string {
	body := statusBody(failureStatus(newFailure(http.StatusServiceUnavailable, "the webhook server closes this connection")))
	return fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nConnection: close\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// lingering is how long a connection that was dismissed has to be closed by the client, and a new
// one to have its call made. That takes no time, but on a busy machine.
const lingering = 3 * time.Second

// dismiss closes a connection that was silent, or stalled, and is marked as dismissed.
//
// A client may be sending a call over it just now, and will not send it again when it finds the
// connection closed: it cannot know how far the call went. The API server does not. A server
// that closes idle connections, as http.Server.Shutdown does, now and then loses a call that
// way. So an HTTP/1.1 connection that had calls is not just closed: first it is sent an answer.
// Which call it answers nobody has said yet. If one is on its way, the client takes the answer
// for its own, and it is right: no handler has seen the call, nor will, and Retry-After has the
// API server make it again at once, over another connection. If none is, the client has no use
// for an answer and closes the connection (RFC 9112, section 9.5; Go's logs a line that starts
// with "Unsolicited response"). Then the server reads on for a while, since a connection closed
// with something unread is reset, and the answer could be lost.
//
// One that has had no call yet may be in the same place, once hands are shaken.
//
// With HTTP/2 there is GOAWAY for that, and a call that came before it is answered.
func (c *connection) dismiss() {
	c.all.mu.Lock()
	t, http2 := c.tls, c.http2
	tell := t != nil && (c.asked || c.stage.Load() >= quiet) && c.all.leaving <= c.all.max
	if c.stalled && http2 == nil { // an answer is in the way
		tell = false
	}
	if tell {
		c.all.told.Add(1)
		c.cut = time.AfterFunc(lingering, c.cutOff)
	}
	c.all.mu.Unlock()
	if !tell {
		_ = c.Close()
		close(c.told)
		return
	}
	go func() {
		defer close(c.told)
		if http2 != nil {
			c.sayGoAway()
		} else if _, err := io.WriteString(t, farewell); err != nil || t.CloseWrite() != nil {
			_ = c.Close()
		} // else net/http reads to the end, and then closes it
	}()
}

// cutOff closes a connection that the client did not close, unless a call has come over it that
// is still to be answered.
func (c *connection) cutOff() {
	c.all.mu.Lock()
	answers := c.calls.Load() > 0 && c.http2 != nil
	c.all.mu.Unlock()
	if !answers {
		_ = c.Close()
	}
}

// mark has a connection without a call have no more calls, which is the first part of dismissing it.
// all.mu is locked.
func (c *connection) mark() {
	c.unlink()
	c.stalled = c.busy
	c.told = make(chan struct{})
	c.all.leaving++
	c.dismissed.Store(true)
}

// abort ends a call that came over a connection that was dismissed: it has its answer, or is
// about to.
func (c *connection) abort(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // until the connection is closed, at most
	<-c.told
	panic(http.ErrAbortHandler)
}

// dismissSilent dismisses the connections without a call. It returns how many are open and when
// to do it again, at the latest. One that is new is given the time to have its call.
func (all *connections) dismissSilent() (left int, wait time.Duration) {
	leave, left, wait := all.markSilent()
	for _, c := range leave {
		c.dismiss()
	}
	return left, wait
}

// markSilent marks the connections to dismiss.
func (all *connections) markSilent() (leave []*connection, left int, wait time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	wait = time.Hour // until something changes
	for c := range all.open {
		left++
		if c.next == nil {
			continue
		}
		if young := lingering - time.Since(c.silent); !c.asked && young > 0 {
			wait = min(wait, young)
			continue
		}
		c.mark()
		leave = append(leave, c)
	}
	return leave, left, wait
}
