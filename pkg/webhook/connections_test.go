// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestMaxConnectionAge makes a call every second for ten minutes, and counts the connections that the client opens.
func TestMaxConnectionAge(t *testing.T) {
	for _, in := range []struct {
		reason      string
		age         time.Duration
		least, most int32 // connections
	}{
		{reason: "five minutes by default", least: 2, most: 3},
		{reason: "a minute", age: time.Minute, least: 9, most: 12},
		{reason: "every answer is the last", age: 1, least: 600, most: 600},
		{reason: "for ever", age: -1, least: 1, most: 1},
	} {
		for _, h2 := range []bool{false, true} {
			row(t, in.reason+map[bool]string{true: ", h2"}[h2], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hook := mutating(label)
					e := serveInMemory(t, webhook.Options{MaxConnectionAge: in.age}, hook)
					var dialled atomic.Int32
					transport := e.client.Transport.(*http.Transport)
					transport.ForceAttemptHTTP2 = h2
					transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						dialled.Add(1)
						return e.dial(ctx, network, addr)
					}
					for range 600 {
						e.ask(t, hook, call{}).allowed(t, call{}, true)
						<-time.After(time.Second)
					}
					if n := dialled.Load(); n < in.least || n > in.most {
						t.Errorf("%d connections, want %d to %d", n, in.least, in.most)
					}
				})
			})
		}
	}
}

// TestMaxConnections opens more connections than the limit while one connection has a call in flight. The server must
// close the oldest connection that never had a call, even if it had other requests. It must not close the connection
// with the call.
func TestMaxConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxConnections: 3}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		busy := make(chan answer)
		go func() { busy <- e.post(t, hook.Path()+"?timeout=30s", call{}.body()) }()
		<-d.arrived
		closed := make(chan string, 10)
		open := func(name string) *tls.Conn {
			conn := e.dialTLS(t)
			go func() { _, _ = io.Copy(io.Discard, conn); closed <- name; _ = conn.Close() }()
			synctest.Wait()
			return conn
		}
		open("first")
		second := open("second")
		open("third")
		if got := <-closed; got != "first" {
			t.Errorf("%s was closed", got)
		}
		if _, err := io.WriteString(second, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil { // not a call, so the connection can still be closed
			t.Fatal(err)
		}
		synctest.Wait()
		open("fourth")
		if got := <-closed; got != "second" {
			t.Errorf("%s was closed", got)
		}
		d.leave <- true
		if a := <-busy; a.code != http.StatusOK {
			t.Errorf("the call: %d %s", a.code, a.body)
		}
		e.stopAll(t)
	})
}

// stopAll stops the server and fails the test if Start returned an error.
func (e *endpoint) stopAll(tb testing.TB) {
	tb.Helper()
	if err := e.stop(); err != nil {
		tb.Error(err)
	}
}

// TestAllConnectionsAreBusy opens a connection while the only allowed connection has a call in flight. The new
// connection must wait until that call is answered.
func TestAllConnectionsAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxConnections: 1}, hook)
		first, second := make(chan answer), make(chan answer)
		for _, got := range []chan answer{first, second} {
			client := e.another()
			go func() { got <- client.post(t, hook.Path()+"?timeout=30s", call{}.body()) }()
			synctest.Wait()
		}
		<-d.arrived
		<-time.After(2 * time.Second)
		select {
		case <-d.arrived:
			t.Error("there was room for a second connection")
		case d.leave <- true:
		}
		(<-first).allowed(t, call{}, true)
		<-d.arrived
		d.leave <- true
		(<-second).allowed(t, call{}, true)
		<-time.After(5 * time.Second)
	})
}

// another returns a copy of the endpoint whose client has its own connections, over HTTP/1.1.
func (e *endpoint) another() *endpoint {
	c := *e
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: e.roots()}, DialContext: e.dial}}
	return &c
}

// TestNewConnectionsAreNotEvictedTooEarly runs more clients than MaxConnections, with slow handshakes. Each client must
// be able to make its calls. If the server closes a connection, the client must get a close notice instead of an error.
func TestNewConnectionsAreNotEvictedTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(label)
		e := serveInMemory(t, webhook.Options{MaxConnections: 5}, hook)
		var clients sync.WaitGroup
		for i := range 20 {
			client := e.another()
			transport := client.client.Transport.(*http.Transport)
			transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := e.dial(ctx, network, addr)
				<-time.After(time.Duration(i) * 10 * time.Millisecond)
				return conn, err
			}
			clients.Go(func() {
				for range 20 {
					a := client.ask(t, hook, call{})
					for a.code == http.StatusServiceUnavailable {
						a = client.ask(t, hook, call{})
					}
					a.allowed(t, call{}, true)
					<-time.After(time.Duration(i) * time.Millisecond)
				}
				transport.CloseIdleConnections()
			})
		}
		clients.Wait()
		<-time.After(5 * time.Second)
	})
}

// TestIdleNewConnectionsDoNotEvictClients keeps opening connections that send nothing. The server must not close the
// connection of a client that makes calls.
func TestIdleNewConnectionsDoNotEvictClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(label)
		e := serveInMemory(t, webhook.Options{MaxConnections: 10}, hook)
		var dialled atomic.Int32
		client := e.another()
		client.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return e.dial(ctx, network, addr)
		}
		client.ask(t, hook, call{}).allowed(t, call{}, true)
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			go func() {
				for ctx.Err() == nil {
					if conn, err := e.dial(ctx, "", ""); err == nil {
						_, _ = io.Copy(io.Discard, conn)
					}
				}
			}()
		}
		for range 100 {
			<-time.After(100 * time.Millisecond)
			client.ask(t, hook, call{}).allowed(t, call{}, true)
		}
		if n := dialled.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		client.client.CloseIdleConnections()
		cancel()
		e.stopAll(t)
	})
}
