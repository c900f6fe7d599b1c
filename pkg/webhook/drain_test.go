// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// probe requests url with the method GET. It returns the code and the text of the answer.
func (e *endpoint) probe(tb testing.TB, url string) (int, string) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestShutdownOrder stops a server while a call is in flight. It checks the probes and further calls during
// ShutdownDelay and after it. The call in flight must be answered before the server ends.
func TestShutdownOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		ctxErr := make(chan error, 1)
		hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
			if req.Name == "long" {
				_ = d.handle(ctx, req)
				ctxErr <- ctx.Err()
			}
			return nil
		})
		e := serveInMemory(t, webhook.Options{ShutdownDelay: 10 * time.Second, DrainTimeout: 35 * time.Second}, hook)
		var dialled atomic.Int32
		transport := e.client.Transport.(*http.Transport)
		transport.ForceAttemptHTTP2 = false
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return e.dial(ctx, network, addr)
		}
		if code, _ := e.probe(t, e.url+"/readyz"); code != http.StatusOK {
			t.Fatalf("/readyz: %d", code)
		}
		var calls sync.WaitGroup
		calls.Go(func() { e.post(t, hook.Path()+"?timeout=30s", call{name: "long"}.body()).allowed(t, call{}, true) })
		<-d.arrived
		start, stopped := time.Now(), make(chan error)
		e.leaveIdle = true
		go func() { stopped <- e.stop() }()
		synctest.Wait()

		// At once: the server is alive but not ready, and serves each call on a new connection.
		if code, body := e.probe(t, e.url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "the server is stopping") {
			t.Errorf("/readyz: %d %s", code, body)
		}
		if code, _ := e.probe(t, e.url+"/healthz"); code != http.StatusOK {
			t.Errorf("/healthz: %d", code)
		}
		before := dialled.Load()
		for range 3 {
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			synctest.Wait()
		}
		if n := dialled.Load() - before; n != 3 {
			t.Errorf("%d connections for three calls", n)
		}
		<-time.After(10*time.Second - 1)
		e.ask(t, hook, call{}).allowed(t, call{}, true)

		// After the delay: new calls are answered 503, and the call in flight continues.
		<-time.After(time.Second)
		a := e.ask(t, hook, call{})
		if a.turnedAway(t, http.StatusServiceUnavailable, "0"); a.failed(t).Reason != "ServiceUnavailable" {
			t.Errorf("got %s", a.body)
		}
		if code, _ := e.probe(t, e.url+"/healthz"); code != http.StatusOK {
			t.Errorf("/healthz: %d", code)
		}
		<-time.After(10 * time.Second)
		e.ask(t, hook, call{}).turnedAway(t, http.StatusServiceUnavailable, "0")
		d.leave <- true
		if err := <-ctxErr; err != nil {
			t.Errorf("the context of the call in flight: %v", err)
		}
		calls.Wait()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 20*time.Second || took > 23*time.Second {
			t.Errorf("stopped after %s", took)
		}
		if _, err := e.try(t.Context(), hook.Path(), call{}.body()); err == nil {
			t.Error("it still listens")
		}
	})
}

// TestAServerThatNeverServedStopsWithoutDelay starts a server with a context that is already done. Start must return
// nil at once.
func TestAServerThatNeverServedStopsWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, config := certificate(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
		if err := webhook.NewServer(webhook.Options{TLSConfig: config, Listener: l}).Start(ctx); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// While late is set, a lateConn holds back what the client writes, as if the network were slow.
type lateConn struct {
	net.Conn
	late *atomic.Bool
	held chan func()
}

func (c *lateConn) Write(b []byte) (int, error) {
	if c.late.Load() {
		b := append([]byte(nil), b...)
		c.held <- func() { _, _ = c.Conn.Write(b) }
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestACallOnItsWayWhenItsConnectionIsClosed sends a call over a connection that the server closes as idle. The client
// must get an answer after which the API server repeats the call.
func TestACallOnItsWayWhenItsConnectionIsClosed(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		for _, in := range []struct {
			reason string
			o      webhook.Options
			end    func(t *testing.T, e *endpoint)
		}{
			{reason: "because the server stops", end: func(_ *testing.T, e *endpoint) { e.leaveIdle = true; go func() { _ = e.stop() }() }},
			{reason: "because there are too many", o: webhook.Options{MaxConnections: 1}, end: func(t *testing.T, e *endpoint) {
				conn := e.dialTLS(t)
				t.Cleanup(func() { _ = conn.Close() })
			}},
		} {
			row(t, fmt.Sprintf("%s, it arrives: %t", in.reason, arrives), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var handled atomic.Int32
					hook := mutating(func(context.Context, *webhook.Request[corev1.Pod]) error { handled.Add(1); return nil })
					e := serveInMemory(t, in.o, hook)
					late, held := &atomic.Bool{}, make(chan func(), 10)
					transport := e.client.Transport.(*http.Transport)
					transport.ForceAttemptHTTP2 = false
					transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := e.dial(ctx, network, addr)
						return &lateConn{conn, late, held}, err
					}
					e.ask(t, hook, call{}).allowed(t, call{}, true)
					synctest.Wait()
					late.Store(true)
					got := make(chan answer)
					go func() { got <- e.ask(t, hook, call{}) }()
					synctest.Wait()
					in.end(t, e)
					synctest.Wait()
					if arrives {
						deliver(held)
					}
					(<-got).turnedAway(t, http.StatusServiceUnavailable, "0")
					late.Store(false)
					deliver(held)
					if n := handled.Load(); n != 1 {
						t.Errorf("handled %d calls", n)
					}
					<-time.After(5 * time.Second)
				})
			})
		}
	}
}

// TestACallDuringACloseNotice sends a call while the server is still writing the close notice. The client must get the
// close notice as the answer.
func TestACallDuringACloseNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(label)
		l := &slowListener{listener: &listener{conns: make(chan net.Conn), closed: make(chan struct{})}}
		e := serve(t, webhook.Options{Listener: l, MaxConnections: 1, DrainTimeout: time.Minute}, hook)
		e.dial = l.dial
		client := e.another()
		client.client.Transport.(*http.Transport).DialContext = l.dial
		client.ask(t, hook, call{}).allowed(t, call{}, true)
		synctest.Wait()
		l.slow.Store(true)
		raw, err := l.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		client.ask(t, hook, call{}).turnedAway(t, http.StatusServiceUnavailable, "0")
		_ = raw.Close()
		<-time.After(5 * time.Second)
	})
}

// A slowListener accepts connections on which a write takes a second while slow is set.
type slowListener struct {
	*listener
	slow atomic.Bool
}

func (l *slowListener) Accept() (net.Conn, error) {
	conn, err := l.listener.Accept()
	return &slowConn{conn, &l.slow}, err
}

type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c *slowConn) Write(b []byte) (int, error) {
	if c.slow.Load() {
		<-time.After(time.Second)
	}
	return c.Conn.Write(b)
}

// TestAnUnusedConnectionIsKept opens a connection and makes the first call later. The server must keep the connection
// for as long as one that had calls. If the server stops first, the client must get a close notice.
func TestAnUnusedConnectionIsKept(t *testing.T) {
	for _, in := range []struct {
		reason string
		unused time.Duration
		stop   bool
		code   int
	}{
		{reason: "for 11 s", unused: 11 * time.Second, code: http.StatusOK},
		{reason: "for 90 s", unused: 90 * time.Second, code: http.StatusOK},
		{reason: "the server stops", unused: 4 * time.Second, stop: true, code: http.StatusServiceUnavailable},
		{reason: "the server stops early", unused: 0, stop: true, code: http.StatusServiceUnavailable},
	} {
		row(t, in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := mutating(label)
				e := serveInMemory(t, webhook.Options{}, hook)
				conn := e.dialTLS(t)
				<-time.After(in.unused)
				if in.stop {
					go func() { _ = e.stop() }()
					<-time.After(3500 * time.Millisecond)
				}
				body := call{}.body()
				_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", hook.Path(), len(body), body)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				said, err := io.ReadAll(resp.Body)
				if resp.StatusCode != in.code || strings.Contains(string(said), "closes this connection") != in.stop || err != nil {
					t.Errorf("got %s %s %v", resp.Status, said, err)
				}
				_ = conn.Close()
				<-time.After(5 * time.Second)
			})
		})
	}
}

func deliver(held chan func()) {
	for {
		select {
		case send := <-held:
			send()
		default:
			return
		}
	}
}

// TestNoCallIsLostWhileServersStop makes calls over real sockets while one server after another stops. Before a server
// stops, a new one starts, and new connections go to it. Like the API server, the clients repeat a call after 503 with
// Retry-After: 0. Every call must succeed.
func TestNoCallIsLostWhileServersStop(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2 %t", h2), func(t *testing.T) {
			hook := mutating(label)
			_, config := certificate(t)
			var current atomic.Pointer[endpoint]
			options := webhook.Options{TLSConfig: config, ShutdownDelay: 100 * time.Millisecond, DrainTimeout: 10 * time.Second}
			current.Store(serve(t, options, hook))
			first := current.Load()
			transport := &http.Transport{TLSClientConfig: tlsInsecure.Clone(), ForceAttemptHTTP2: h2, MaxIdleConnsPerHost: 25}
			transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(current.Load().url, "https://"))
			}
			client := &endpoint{url: first.url, client: &http.Client{Transport: transport}}
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			var made, again atomic.Int32
			for range 8 {
				callers.Go(func() {
					for ctx.Err() == nil {
						a, err := client.try(t.Context(), hook.Path()+"?timeout=5s", call{}.body())
						for retries := 0; err == nil && a.code == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "0" && retries < 10; retries++ {
							again.Add(1)
							a, err = client.try(t.Context(), hook.Path()+"?timeout=5s", call{}.body())
						}
						if made.Add(1); err != nil || a.code != http.StatusOK {
							t.Errorf("%v, %d %s", err, a.code, a.body)
							return
						}
					}
				})
			}
			for range 20 {
				old := current.Load()
				for goal := made.Load() + 50; made.Load() < goal && !t.Failed(); {
					_, _ = old.try(t.Context(), hook.Path(), call{}.body())
				}
				current.Store(serve(t, options, hook))
				old.leaveIdle = true
				if err := old.stop(); err != nil {
					t.Error(err)
				}
			}
			stop()
			callers.Wait()
			transport.CloseIdleConnections()
			t.Logf("%d calls, %d made again", made.Load(), again.Load())
		})
	}
}

func TestAListenerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		l := &failingListener{listener: &listener{conns: make(chan net.Conn), closed: make(chan struct{})}, fail: make(chan bool)}
		e := serve(t, webhook.Options{Listener: l, DrainTimeout: time.Minute}, hook)
		e.dial = l.dial
		e.client.Transport.(*http.Transport).DialContext = l.dial
		var calls sync.WaitGroup
		calls.Go(func() { e.ask(t, hook, call{}).allowed(t, call{}, true) })
		<-d.arrived
		close(l.fail)
		synctest.Wait()
		d.leave <- true
		calls.Wait()
		if err := e.stop(); err == nil || err.Error() != "the webhook server stopped: out of files" {
			t.Errorf("got %v", err)
		}
	})
}

type failingListener struct {
	*listener
	fail chan bool
}

func (l *failingListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.fail:
		return nil, errors.New("out of files")
	}
}
