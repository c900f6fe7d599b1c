// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// closeNotice is sent over an idle HTTP/1.1 connection before it is closed.
var closeNotice = func() string {
	body := reply.Encode(reply.StatusOf(reply.New(http.StatusServiceUnavailable, "the webhook server closes this connection")))
	return fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nConnection: close\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// lingerTime is how long a client may take to close its connection after a close notice. During a
// drain, it is also how long a client may take to make its first call on a new connection.
const lingerTime = 3 * time.Second

// mark makes a connection refuse new calls. The connection must not have a call. Call notify afterwards.
// all.mu must be locked.
func (c *Connection) mark() {
	c.unlink()
	c.state.wasBusy = c.state.busy
	c.notified = make(chan struct{})
	c.all.closing++
	c.closing.Store(true)
}

// notify closes a marked connection. If a call may be on its way, it sends a close notice first.
//
// A client that finds its connection closed cannot know whether its call was seen, and the API server does not repeat
// the call. A server that closes idle connections, as http.Server.Shutdown does, therefore loses a call now and then.
// So the server sends an answer first, over an HTTP/1.1 connection that had requests. If a call is on its way, the
// client takes this for the answer to that call. This is correct: no handler has seen the call or will see it.
// Retry-After makes the API server repeat the call at once over another connection. If no call is on its way, the
// client ignores the answer and closes the connection (RFC 9112, section 9.5; Go logs "Unsolicited response"). The
// server continues to read for a while: closing a connection with unread bytes resets it, and the answer could be lost.
//
// Once the TLS handshake is done, a new connection may have a call on its way as well. With HTTP/2 the server sends
// GOAWAY, and answers the calls that came before.
func (all *Connections) notify(c *Connection) {
	all.mu.Lock()
	s := &c.state
	conn, http2 := s.tls, s.http2
	notice := conn != nil && (s.requested || c.phase.Load() >= phaseQuiet) && all.closing <= all.max
	if s.wasBusy && http2 == nil { // a part of an answer may have been sent
		notice = false
	}
	if notice {
		all.notices.Add(1)
		s.cutOff = time.AfterFunc(lingerTime, c.cutOff)
	}
	all.mu.Unlock()
	if !notice {
		_ = c.Close()
		close(c.notified)
		return
	}
	go func() {
		defer close(c.notified)
		if http2 != nil {
			goAway(http2)
		} else if _, err := io.WriteString(conn, closeNotice); err != nil || conn.CloseWrite() != nil {
			_ = c.Close()
		} // else net/http reads to the end and closes the connection
	}()
}

// goAway closes an HTTP/2 connection once its calls are answered.
func goAway(server *http.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Shutdown sends GOAWAY and need not wait
	_ = server.Shutdown(ctx)
}

// cutOff closes a connection that the client did not close, unless an HTTP/2 call on the connection
// still waits for its answer.
func (c *Connection) cutOff() {
	c.all.mu.Lock()
	answers := c.calls.Load() > 0 && c.state.http2 != nil
	c.all.mu.Unlock()
	if !answers {
		_ = c.Close()
	}
}

// notifyIdle closes the connections that have no call in flight, but gives each new connection lingerTime to make its
// first call. It returns how many connections are open, and the longest time to wait before the next call of
// notifyIdle.
func (all *Connections) notifyIdle() (open int, wait time.Duration) {
	idle, open, wait := all.markIdle()
	for _, c := range idle {
		all.notify(c)
	}
	return open, wait
}

// markIdle marks the connections that notifyIdle closes.
func (all *Connections) markIdle() (idle []*Connection, open int, wait time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	wait = untilChange
	for c := range all.open {
		open++
		if c.state.next == nil {
			continue
		}
		if remaining := lingerTime - time.Since(c.state.idleSince); !c.state.requested && remaining > 0 {
			wait = min(wait, remaining)
			continue
		}
		c.mark()
		idle = append(idle, c)
	}
	return idle, open, wait
}
