// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestMaxConnectionAge has a call every second for ten minutes.
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

// TestMaxConnections has connections with a call, idle ones and silent ones; the one that was
// silent for longest goes, and never one with a call.
func TestMaxConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorman()
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
		if _, err := io.WriteString(second, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil { // now it was silent for less long
			t.Fatal(err)
		}
		synctest.Wait()
		open("fourth")
		if got := <-closed; got != "third" {
			t.Errorf("%s was closed", got)
		}
		d.leave <- true
		if a := <-busy; a.code != http.StatusOK {
			t.Errorf("the call: %d %s", a.code, a.body)
		}
		e.stopAll(t)
	})
}

// stopAll ends the server, with the connections that clients keep.
func (e *endpoint) stopAll(tb testing.TB) {
	tb.Helper()
	if err := e.stop(); err != nil {
		tb.Error(err)
	}
}

// TestAllConnectionsAreBusy has a client wait for room, until a connection is not busy.
func TestAllConnectionsAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorman()
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

// another is a client with connections of its own, over HTTP/1.1.
func (e *endpoint) another() *endpoint {
	c := *e
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: e.roots()}, DialContext: e.dial}}
	return &c
}

// TestNewConnectionsAreNotDrivenOut has more clients than there may be connections; they take
// some time to shake hands. Each has its call, and whose connection was closed is told so.
func TestNewConnectionsAreNotDrivenOut(t *testing.T) {
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

// TestStrangersDoNotDriveOutClients has connections come all the time that say nothing.
func TestStrangersDoNotDriveOutClients(t *testing.T) {
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

// A nuisance is a client that does no call, until it has been cut off or ctx is done.
type nuisance func(ctx context.Context, e *endpoint) error

// TestHostileClients has many of each at once, and honest calls meanwhile. Afterwards no
// goroutine is left.
func TestHostileClients(t *testing.T) {
	for _, in := range []struct {
		reason string
		n      int
		do     nuisance
	}{
		{reason: "connections that say nothing", n: 2000, do: silent},
		{reason: "idle connections", n: 300, do: idle},
		{reason: "slow headers", n: 200, do: slowly("POST /mutate/pods.example.com HTTP/1.1\r\nHost: a\r\nX-", "a")},
		{reason: "endless headers", n: 20, do: endlessly("POST /mutate/pods.example.com HTTP/1.1\r\nHost: a\r\nX-A: ")},
		{reason: "slow bodies", n: 50, do: slowly("POST /mutate/pods.example.com?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", " ")},
		{reason: "endless bodies", n: 20, do: endlessly("POST /mutate/pods.example.com?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n")},
		{reason: "garbage for a handshake", n: 300, do: garbage},
		{reason: "streams that are reset", n: 5, do: resets},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := mutating(label)
			before := runtime.NumGoroutine()
			e := serve(t, webhook.Options{MaxConnections: 100, DrainTimeout: 5 * time.Second}, hook)
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan string, in.n)
			for range in.n {
				go func() { ended <- fmt.Sprint(in.do(ctx, e)) }()
			}
			for left := in.n; left > 0; {
				for range 20 {
					e.ask(t, hook, call{}).allowed(t, call{}, true)
				}
				cancel() // after the first honest calls, those that were not cut off give up
				for drained := false; !drained && left > 0; {
					select {
					case <-ended:
						left--
					default:
						drained = true
					}
				}
			}
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			e.stopAll(t)
			e.client.CloseIdleConnections()
			cancel()
			err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
				return runtime.NumGoroutine() <= before+1, nil
			})
			if err != nil {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, before there were %d\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
}

// dialUntil connects to the server; the connection ends with ctx.
func (e *endpoint) dialUntil(ctx context.Context) (net.Conn, func(), error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(e.url, "https://"))
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, func() { stop(); _ = conn.Close() }, nil
}

// secured is dialUntil with a handshake.
func (e *endpoint) secured(ctx context.Context, protocol string) (*tls.Conn, func(), error) {
	raw, done, err := e.dialUntil(ctx)
	if err != nil {
		return nil, nil, err
	}
	config := tlsInsecure.Clone()
	config.NextProtos = []string{protocol}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		done()
		return nil, nil, err
	}
	return conn, done, nil
}

func silent(ctx context.Context, e *endpoint) error {
	conn, done, err := e.dialUntil(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = io.Copy(io.Discard, conn)
	return err
}

func idle(ctx context.Context, e *endpoint) error {
	conn, done, err := e.secured(ctx, "http/1.1")
	if err != nil {
		return err
	}
	defer done()
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
	_, err = io.Copy(io.Discard, conn)
	return err
}

func slowly(head, more string) nuisance {
	return func(ctx context.Context, e *endpoint) error {
		conn, done, err := e.secured(ctx, "http/1.1")
		if err != nil {
			return err
		}
		defer done()
		_, _ = io.WriteString(conn, head)
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for range ticks.C {
			if _, err := io.WriteString(conn, more); err != nil {
				return err
			}
		}
		return nil
	}
}

func endlessly(head string) nuisance {
	return func(ctx context.Context, e *endpoint) error {
		conn, done, err := e.secured(ctx, "http/1.1")
		if err != nil {
			return err
		}
		defer done()
		_, _ = io.WriteString(conn, head)
		for chunk := strings.Repeat(" ", 1<<14); err == nil; {
			_, err = io.WriteString(conn, chunk)
		}
		return err
	}
}

func garbage(ctx context.Context, e *endpoint) error {
	conn, done, err := e.dialUntil(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, _ = io.WriteString(conn, strings.Repeat("\x16\x03\x01garbage", 100))
	_, err = io.Copy(io.Discard, conn)
	return err
}

// resets begins calls over HTTP/2 and takes each back at once.
func resets(ctx context.Context, e *endpoint) error {
	conn, done, err := e.secured(ctx, "h2")
	if err != nil {
		return err
	}
	defer done()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, nil)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for id := uint32(1); id < 1<<20; id += 2 {
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a"},
			{Name: ":path", Value: "/mutate/pods.example.com?timeout=30s"}, {Name: "content-type", Value: "application/json"},
		} {
			_ = encoder.WriteField(f)
		}
		err = errors.Join(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndHeaders: true}),
			framer.WriteRSTStream(id, http2.ErrCodeCancel))
		if err != nil {
			return fmt.Errorf("after %d streams: %w", id/2, err)
		}
	}
	return nil
}
