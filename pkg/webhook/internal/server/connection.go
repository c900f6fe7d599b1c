// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A Connection is an open connection of a server. net/http sees it inside a *tls.Conn. Calls on a
// nil Connection are not counted.
type Connection struct {
	net.Conn
	all     *connectionSet
	opened  time.Time
	expires time.Time // after this time, an answer closes the connection
	phase   atomic.Int32

	state connectionState // guarded by all.mu

	hadCall   atomic.Bool   // a call has entered on this connection
	calls     atomic.Int32  // in flight
	lastCall  atomic.Int64  // age of the connection when its last call ended, in nanoseconds
	discards  atomic.Bool   // the rest of a body is being read so that the next call can follow
	closing   atomic.Bool   // the connection takes no more calls
	notified  chan struct{} // created with closing=true; closed once the client got the close notice, or cannot get one
	http2Done chan struct{} // with HTTP/2, closed with the connection
}

// A connectionState is the part of a Connection that the lock of its connectionSet guards.
type connectionState struct {
	prev, next *Connection // in one of the lists; nil while the connection is busy
	idleSince  time.Time
	busySince  time.Time // start of the busy time, which an idle time shorter than shortBreak does not interrupt
	tls        *tls.Conn
	requested  bool // a request was read, or the preface of HTTP/2
	busy       bool
	wasBusy    bool // the connection was busy when it began to close
	closed     bool
	cutOff     *time.Timer  // closes the connection if the client does not
	http2      *http.Server // of this connection alone; set before the first call
}

// A connectionSet is the lock and the lists that connections share.
type connectionSet struct {
	mu      sync.Mutex
	lists   [3]Connection // the roots of the lists
	waiting int           // connections in the lists newConnections and probeConnections
	open    map[*Connection]struct{}
	closing int           // connections in open that are closing
	changed chan struct{} // receives a value when a connection closes or becomes idle
}

// The lists of idle connections, in the order in which they became idle.
const (
	newConnections   = iota // had no request yet
	probeConnections        // had requests, but no call
	callConnections         // had a call
)

func (c *Connection) list() int {
	switch {
	case c.hadCall.Load():
		return callConnections
	case c.state.requested:
		return probeConnections
	}
	return newConnections
}

// link appends c to its list of idle connections.
func (all *connectionSet) link(c *Connection) {
	list := c.list()
	if list != callConnections {
		all.waiting++
	}
	root := &all.lists[list]
	s := &c.state
	s.idleSince = time.Now()
	s.prev, s.next = root.state.prev, root
	s.prev.state.next, s.next.state.prev = c, c
}

// unlink removes c from its list. The caller must not change hadCall before, because hadCall
// determines the list.
func (c *Connection) unlink() {
	s := &c.state
	if s.next == nil {
		return
	}
	if c.list() != callConnections {
		c.all.waiting--
	}
	s.prev.state.next, s.next.state.prev = s.next, s.prev
	s.prev, s.next = nil, nil
}

// oldest returns the connection of a list that has been idle longest, or nil.
func (all *connectionSet) oldest(list int) *Connection {
	if root := &all.lists[list]; root.state.next != root {
		return root.state.next
	}
	return nil
}

// beginCall counts a call as in flight, until endCall is called.
func (c *Connection) beginCall() {
	if c != nil {
		c.calls.Add(1)
		if !c.hadCall.Load() {
			c.hadCall.Store(true)
		}
	}
}

func (c *Connection) endCall() {
	if c != nil {
		c.lastCall.Store(int64(time.Since(c.opened)))
		c.calls.Add(-1)
	}
}

// Discard reads the rest of a body, after which the next call can follow on the connection.
func (c *Connection) Discard(w http.ResponseWriter, r *http.Request) {
	if c != nil {
		c.discards.Store(true)
		defer func() {
			c.lastCall.Store(int64(time.Since(c.opened)))
			c.discards.Store(false)
		}()
	}
	reply.Discard(w, r, reply.DiscardKept)
}

// AbortIfClosing ends a request that came over HTTP/1.1 after the connection began to close: the
// close notice is its answer.
func (c *Connection) AbortIfClosing(r *http.Request) {
	if c == nil || !c.closing.Load() || c.state.http2 != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // until the connection is closed, at most
	<-c.notified
	panic(http.ErrAbortHandler)
}

// The phases of a connection before its first request. SetReadDeadline infers them from the deadlines that net/http
// sets.
const (
	phaseOpened int32 = iota
	phaseHandshake
	phaseHandshakeDone
	phaseQuiet // HTTP/1.1 without a byte of a request
	phaseRequested
)

// SetReadDeadline is called by net/http, through the *tls.Conn. After the handshake, net/http expects the headers of a
// request soon, but the API server often opens a connection in advance. So the idle timeout applies until the first
// byte arrives, and only then the timeout for headers.
func (c *Connection) SetReadDeadline(t time.Time) error {
	switch phase := c.phase.Load(); {
	case phase >= phaseRequested:
	case t.IsZero():
		c.phase.CompareAndSwap(phaseHandshake, phaseHandshakeDone)
	case phase == phaseOpened:
		c.phase.Store(phaseHandshake)
	case phase == phaseHandshakeDone, phase == phaseQuiet:
		c.phase.Store(phaseQuiet)
		t = t.Add(IdleTimeout - HeaderTimeout)
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *Connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.phase.Load() == phaseQuiet && c.phase.CompareAndSwap(phaseQuiet, phaseRequested) {
		_ = c.Conn.SetReadDeadline(time.Now().Add(HeaderTimeout)) // a failure shows in the next read
	}
	return n, err
}

// Close closes the connection. net/http calls it too.
func (c *Connection) Close() error {
	c.all.mu.Lock()
	c.unlink()
	s := &c.state
	if !s.closed {
		s.closed = true
		delete(c.all.open, c)
		if c.closing.Load() {
			c.all.closing--
		}
		if c.http2Done != nil {
			close(c.http2Done)
		}
	}
	if s.cutOff != nil {
		s.cutOff.Stop()
	}
	c.all.mu.Unlock()
	wake(c.all.changed)
	return c.Conn.Close()
}

// connectionUnder returns the Connection inside a *tls.Conn, or nil.
func connectionUnder(conn net.Conn) *Connection {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	c, _ := t.NetConn().(*Connection)
	return c
}

type connectionKey struct{}

// WithConnection returns a context for the requests on conn, in which ConnectionOf finds the Connection.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connectionUnder(conn))
}

// ConnectionOf returns the connection of a request, or nil.
func ConnectionOf(ctx context.Context) *Connection {
	c, _ := ctx.Value(connectionKey{}).(*Connection)
	return c
}
