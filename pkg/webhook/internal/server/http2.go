// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// HTTP/2 has a frame for the end of a connection: GOAWAY names the last call that the server saw, and
// clients repeat later calls over another connection. In net/http only http.Server.Shutdown sends
// it, to all connections of a server. So each HTTP/2 connection has a server of its own, which costs
// little compared to the connection.

// serveHTTP2 serves one HTTP/2 connection until it ends.
func serveHTTP2(conn *tls.Conn, server *http.Server) {
	c := connectionUnder(conn)
	l := &oneConnListener{conn: conn, ended: make(chan struct{}), closed: make(chan struct{})}
	c.all.mu.Lock()
	c.state.http2, c.http2Done = server, l.ended
	c.phase.Store(phaseRequested)
	closed := c.state.closed
	c.all.mu.Unlock()
	if closed {
		return
	}
	_ = server.Serve(l) // returns after GOAWAY, or when the connection has ended
	if l.accepted {
		<-l.ended
	}
}

// A oneConnListener is a listener that accepts one connection.
type oneConnListener struct {
	conn     net.Conn
	accepted bool
	ended    chan struct{} // closed when the connection has ended

	once   sync.Once
	closed chan struct{}
}

func (l *oneConnListener) Accept() (net.Conn, error) {
	if !l.accepted {
		l.accepted = true
		return l.conn, nil
	}
	select {
	case <-l.ended:
	case <-l.closed:
	}
	return nil, net.ErrClosed
}

func (l *oneConnListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneConnListener) Addr() net.Addr { return l.conn.LocalAddr() }
