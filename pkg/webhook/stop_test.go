// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bufio"
	"context"
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

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestAStopThatCutsCallsOff stops a server while calls run longer than DrainTimeout. An idle connection must still get
// a close notice. The stop must take ShutdownDelay and DrainTimeout, and the error of Start must say how many calls
// were cut off.
func TestAStopThatCutsCallsOff(t *testing.T) {
	for _, drain := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
		row(t, drain.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newBlockingHandler()
				hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
					if req.Name == "long" {
						return d.handle(ctx, req)
					}
					return nil
				})
				logs := &logbook{}
				e := serveInMemory(t, webhook.Options{
					ShutdownDelay: time.Second, DrainTimeout: drain, Logger: funcr.New(logs.write, funcr.Options{}),
				}, hook)
				idle := e.dialTLS(t)
				answers := bufio.NewReader(idle)
				_, _ = io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
				receive(t, answers, http.StatusOK, false)
				var calls sync.WaitGroup
				for range 3 {
					client := e.another()
					calls.Go(func() { _, _ = client.try(t.Context(), hook.Path()+"?timeout=30s", call{name: "long"}.body()) })
					<-d.arrived
				}
				start := time.Now()
				stopped := make(chan error)
				e.leaveIdle = true
				go func() { stopped <- e.stop() }()
				<-time.After(500 * time.Millisecond)
				e.another().ask(t, hook, call{}).allowed(t, call{}, true)
				d.leave <- true
				receive(t, answers, http.StatusServiceUnavailable, true)
				if took := time.Since(start); took != time.Second {
					t.Errorf("the client was notified after %s", took)
				}
				_ = idle.Close()
				err := <-stopped
				if want := fmt.Sprintf("2 calls in flight were cut off after %s", drain); err == nil || err.Error() != want {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start); took != time.Second+drain {
					t.Errorf("the stop took %s", took)
				}
				want := fmt.Sprintf(`"msg"="the webhook server stopped" "after"="%s" "callsAnsweredWhileStopping"=2 "callsAborted"=2 "handlersStillRunning"=2 "closeNotices"=1`, time.Second+drain)
				if lines := logs.with("the webhook server stopped"); len(lines) != 1 || !strings.Contains(lines[0], want) {
					t.Errorf("got %s", lines)
				}
				close(d.leave)
				calls.Wait()
			})
		})
	}
}

// TestTheListenerClosesBeforeTheEnd runs a call that takes the whole DrainTimeout. Clients that connect late
// must still get a close notice.
func TestTheListenerClosesBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{DrainTimeout: 20 * time.Second}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		var calls sync.WaitGroup
		calls.Go(func() { e.post(t, hook.Path()+"?timeout=30s", call{}.body()).allowed(t, call{}, true) })
		<-d.arrived
		stopped := make(chan error)
		e.leaveIdle = true
		go func() { stopped <- e.stop() }()
		<-time.After(15900 * time.Millisecond)
		late := e.dialTLS(t)
		<-time.After(200 * time.Millisecond)
		if conn, err := e.dial(t.Context(), "", ""); err == nil {
			t.Error("it still listens")
			_ = conn.Close()
		}
		receive(t, bufio.NewReader(late), http.StatusServiceUnavailable, true)
		_ = late.Close()
		d.leave <- true // in the last second
		calls.Wait()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestACallOverHTTP2OnItsWayWhenItsConnectionEnds sends a call while the server closes the connection with GOAWAY. Go's
// client must repeat the call over a new connection, because GOAWAY reports that the server did not process it.
func TestACallOverHTTP2OnItsWayWhenItsConnectionEnds(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		row(t, fmt.Sprintf("it arrives: %t", arrives), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var handled atomic.Int32
				hook := mutating(func(context.Context, *webhook.Request[corev1.Pod]) error { handled.Add(1); return nil })
				e := serveInMemory(t, webhook.Options{MaxConnections: 1}, hook)
				late, held := &atomic.Bool{}, make(chan func(), 10)
				var dialled int
				e.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dialled++
					conn, err := e.dial(ctx, network, addr)
					if dialled == 1 {
						return &lateConn{conn, late, held}, err
					}
					return conn, err
				}
				a := e.ask(t, hook, call{})
				if a.allowed(t, call{}, true); a.major != 2 {
					t.Fatalf("HTTP/%d", a.major)
				}
				synctest.Wait()
				late.Store(true)
				got := make(chan answer)
				go func() { got <- e.ask(t, hook, call{}) }()
				synctest.Wait()
				conn, err := e.dial(t.Context(), "", "") // exceeds the limit
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				synctest.Wait()
				if arrives {
					deliver(held)
				}
				(<-got).allowed(t, call{}, true)
				deliver(held)
				if n := handled.Load(); n != 2 || dialled != 2 {
					t.Errorf("handled %d calls over %d connections", n, dialled)
				}
				<-time.After(5 * time.Second)
			})
		})
	}
}

// TestACallThatCameBeforeGOAWAY checks that the server answers a call that arrived before it sent GOAWAY, however long
// the call takes.
func TestACallThatCameBeforeGOAWAY(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		l := &slowListener{listener: &listener{conns: make(chan net.Conn), closed: make(chan struct{})}}
		e := serve(t, webhook.Options{Listener: l, MaxConnections: 1, DrainTimeout: time.Minute}, hook)
		e.dial = l.dial
		e.client.Transport.(*http.Transport).DialContext = l.dial
		got := make(chan answer)
		ask := func() { got <- e.post(t, hook.Path()+"?timeout=30s", call{}.body()) }
		go ask()
		<-d.arrived
		d.leave <- true
		(<-got).allowed(t, call{}, true)
		synctest.Wait()
		l.slow.Store(true) // writing the GOAWAY frame takes a second
		raw, err := l.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go ask()
		<-d.arrived
		l.slow.Store(false)
		<-time.After(10 * time.Second)
		d.leave <- true
		(<-got).allowed(t, call{}, true)
		_ = raw.Close()
		<-time.After(5 * time.Second)
	})
}

// TestAnUnusedConnectionIsNotSlow sends the first byte of a request a minute after it opened the connection. The time
// limit for the headers must begin with that byte.
func TestAnUnusedConnectionIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := serveInMemory(t, webhook.Options{}, mutating(label))
		conn := e.dialTLS(t)
		<-time.After(time.Minute)
		start := time.Now()
		_, _ = io.WriteString(conn, "P")
		_, _ = io.Copy(io.Discard, conn)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it ended after %s", took)
		}
		_ = conn.Close()
	})
}
