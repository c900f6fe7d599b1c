// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections are the open connections of a server. Those without a call are in one of two
// lists, in the order in which they fell silent: strangers have never had one.
type connections struct {
	max int
	age time.Duration

	mu               sync.Mutex
	strangers, known connection // the roots of the lists
	open             map[*connection]struct{}
	changed          chan struct{} // told when one is closed
}

func newConnections(o *Options) *connections {
	all := &connections{max: o.MaxConnections, age: o.MaxConnectionAge, open: map[*connection]struct{}{}, changed: make(chan struct{}, 1)}
	for _, list := range []*connection{&all.strangers, &all.known} {
		list.prev, list.next = list, list
	}
	return all
}

// A connection is one of a server's. What net/http knows of it as a *tls.Conn is around it.
type connection struct {
	net.Conn
	all     *connections
	expires time.Time

	// Of these, all.mu is the lock.
	prev, next *connection // nil while there is a call
	tls        *tls.Conn   // nil until the first request, or else its headers' first frame, was read
	h2         bool
	closed     bool

	called    atomic.Bool // a call was let in
	dismissed atomic.Bool // there will be no more calls
}

// listen has a listener's connections be among these.
func (all *connections) listen(l net.Listener) net.Listener { return &trackingListener{l, all} }

type trackingListener struct {
	net.Listener
	all *connections
}

func (l *trackingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.all.add(conn); c != nil {
			return c, nil
		}
	}
}

// add takes up a connection. If there are too many, the one that has been silent for longest has
// to go, and if all others have calls, that is the new one. Strangers go first: else whoever
// makes many connections would drive out the API server's.
func (all *connections) add(conn net.Conn) *connection {
	c := &connection{Conn: conn, all: all, expires: time.Now().Add(jittered(all.age))}
	all.mu.Lock()
	all.open[c] = struct{}{}
	all.append(c)
	var silent *connection
	if len(all.open) > all.max {
		if silent = all.strangers.next; silent == c && all.known.next != &all.known {
			silent = all.known.next
		}
		delete(all.open, silent)
		silent.unlink()
		silent.dismissed.Store(true)
	}
	all.mu.Unlock()
	if silent == nil {
		return c
	}
	if silent == c {
		_ = c.Close()
		return nil
	}
	silent.dismiss()
	return c
}

// jittered is an age, or a tenth more or less, so that connections that were made together do
// not end together. It is a nanosecond early: one of that age ends even if no time passes.
func jittered(age time.Duration) time.Duration {
	spread := age / 10
	return age - spread + min(rand.N(2*spread+1), 1<<63-1-(age-spread)) - 1
}

func (all *connections) append(c *connection) {
	list := &all.strangers
	if c.called.Load() {
		list = &all.known
	}
	c.prev, c.next = list.prev, list
	c.prev.next, c.next.prev = c, c
}

func (c *connection) unlink() {
	if c.next != nil {
		c.prev.next, c.next.prev = c.next, c.prev
		c.prev, c.next = nil, nil
	}
}

// onState is what net/http tells of a connection: busy from the headers of a request until the
// answer is sent, or taken away from it and then closed.
func (all *connections) onState(conn net.Conn, state http.ConnState) {
	c := connectionUnder(conn)
	if c == nil {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	switch state {
	case http.StateActive:
		if c.tls == nil {
			c.tls = conn.(*tls.Conn)
			c.h2 = c.tls.ConnectionState().NegotiatedProtocol == "h2"
		}
		c.unlink()
	case http.StateIdle:
		if c.next == nil && !c.closed && !c.dismissed.Load() {
			all.append(c)
		}
	}
}

func connectionUnder(conn net.Conn) *connection {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	c, _ := t.NetConn().(*connection)
	return c
}

type connectionKey struct{}

// withConnection has the contexts of a connection's requests know it.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connectionUnder(conn))
}

func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// Close closes the connection, and is called by everybody who does.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.closed = true
	c.unlink()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	tell(c.all.changed)
	return c.Conn.Close()
}

// farewell is sent over an idle connection before it is closed.
var farewell = func() string {
	body := statusBody(failureStatus(newFailure(http.StatusServiceUnavailable, "the webhook server closes this connection")))
	return fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nConnection: close\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// lingering is how long a connection that was dismissed has to be closed by the client, and a new
// one to have its call made. That takes no time, but on a busy machine.
const lingering = 3 * time.Second

// dismiss closes a connection that was silent and is marked as dismissed.
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
// With HTTP/2 there is GOAWAY for that, which names the last call that was seen.
func (c *connection) dismiss() {
	c.all.mu.Lock()
	t := c.tls
	if c.h2 {
		t = nil
	}
	c.all.mu.Unlock()
	if t == nil {
		_ = c.Close()
		return
	}
	go func() {
		_ = t.SetDeadline(time.Now().Add(lingering))
		if _, err := io.WriteString(t, farewell); err != nil || t.CloseWrite() != nil {
			_ = c.Close()
		} // else net/http reads to the end or the deadline, and then closes it
	}()
}

// abort ends a call that came over a connection that was dismissed: it has its answer.
func abort(r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, mostDiscarded) // until its deadline, at most
	panic(http.ErrAbortHandler)
}

// dismissSilent dismisses the connections without a call, and waits until all are closed but
// those of HTTP/2, which end in another way. A new one has until ctx is done to be of use.
func (all *connections) dismissSilent(ctx context.Context) error {
	for {
		all.mu.Lock()
		var leave []*connection
		left := 0
		for c := range all.open {
			if c.tls != nil && !c.h2 && c.next != nil {
				c.unlink()
				c.dismissed.Store(true)
				leave = append(leave, c)
			}
			if !c.h2 {
				left++
			}
		}
		all.mu.Unlock()
		for _, c := range leave {
			c.dismiss()
		}
		if left == 0 {
			return nil
		}
		select {
		case <-all.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (all *connections) closeAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c := range all.open {
		_ = c.Conn.Close()
	}
}
