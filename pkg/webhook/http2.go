// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// HTTP/2 has a frame that says goodbye: GOAWAY names the last call that was seen, and clients
// make those after it again, over another connection. Of net/http only http.Server.Shutdown sends
// it, to all connections of a server. So that one can be told, each has a server of its own, which
// costs little next to the connection.

// serveHTTP2 serves a connection that is to speak HTTP/2, until it ends.
func serveHTTP2(conn *tls.Conn, server *http.Server) {
	c := connectionUnder(conn)
	l := &oneConn{conn: conn, ended: make(chan struct{}), closed: make(chan struct{})}
	c.all.mu.Lock()
	c.http2, c.ended = server, l.ended
	c.stage.Store(spoken)
	closed := c.closed
	c.all.mu.Unlock()
	if closed {
		return
	}
	_ = server.Serve(l) // it was told to shut down, or the connection ended
	if l.taken {
		<-l.ended
	}
}

// sayGoAway has a connection of HTTP/2 be closed once the calls that came over it are answered.
func (c *connection) sayGoAway() {
	at, cancel := context.WithCancel(context.Background())
	cancel() // the rest does not need to be waited for
	_ = c.http2.Shutdown(at)
}

// oneConn is a listener that has one connection.
type oneConn struct {
	conn  net.Conn
	taken bool
	ended chan struct{} // with the connection

	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return l.conn, nil
	}
	select {
	case <-l.ended:
	case <-l.closed:
	}
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
