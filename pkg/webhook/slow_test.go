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
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A trickle is a call whose body arrives a few bytes at a time. answer receives the answer.
type trickle struct{ answer chan answer }

// trickle begins a call with the first bytes of the body. The rest arrives at perSecond bytes per second, until there
// is an answer.
func (e *endpoint) trickle(t *testing.T, hook *webhook.Hook, body []byte, first, perSecond int) trickle {
	t.Helper()
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+hook.Path()+"?timeout=30s", in)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	go func() {
		_, err := out.Write(body[:first])
		for rest := body[first:]; len(rest) > 0 && err == nil; {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				err = ctx.Err()
			}
			n := min(perSecond, len(rest))
			if err == nil {
				_, err = out.Write(rest[:n])
			}
			rest = rest[n:]
		}
		_ = out.CloseWithError(err) // nil ends the body without an error
	}()
	got := make(chan answer, 1)
	go func() {
		defer cancel()
		resp, err := e.client.Do(req)
		if err != nil { // the server ended
			got <- answer{}
			return
		}
		text, _ := io.ReadAll(resp.Body)
		got <- answer{code: resp.StatusCode, header: resp.Header, body: text}
	}()
	return trickle{got}
}

// TestSlowBodiesMakeRoom sends slow bodies until MaxInFlight is reached. A further call must evict the oldest slow
// body. Without a further call, no body may be evicted.
func TestSlowBodiesMakeRoom(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 3}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		body := call{}.body()
		var slow []trickle
		for range 3 {
			slow = append(slow, e.trickle(t, hook, body, 1, 1))
			<-time.After(100 * time.Millisecond)
		}
		e.ask(t, hook, call{}).turnedAway(t, http.StatusTooManyRequests, "1") // the bodies are not slow yet
		<-time.After(2 * time.Second)
		for _, s := range slow {
			select {
			case a := <-s.answer:
				t.Errorf("answered without need: %d %s", a.code, a.body)
			default:
			}
		}
		for i := range slow {
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			a := <-slow[i].answer // the oldest body is evicted first
			a.turnedAway(t, http.StatusTooManyRequests, "1")
			if m := a.failed(t).Message; m != "the webhook server is busy: other calls are waiting, and the body of this one arrives too slowly" {
				t.Errorf("got %s", m)
			}
			if i == 0 { // the evicted call has left room
				e.ask(t, hook, call{}).allowed(t, call{}, true)
			}
			slow = append(slow, e.trickle(t, hook, body, 1, 1))
			<-time.After(time.Second)
		}
		for range 5 { // the slow bodies that are left do not exceed the limit
			<-time.After(time.Second)
			e.ask(t, hook, call{}).allowed(t, call{}, true)
		}
	})
}

// TestMaxInFlightHoldsWithSlowBodies evicts a slow body with MaxInFlight 1. Only one further call may then be in
// flight.
func TestMaxInFlightHoldsWithSlowBodies(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		slow := e.trickle(t, hook, call{}.body(), 1, 1)
		<-time.After(3 * time.Second)
		var calls sync.WaitGroup
		calls.Go(func() { e.ask(t, hook, call{}).allowed(t, call{}, true) })
		<-d.arrived
		(<-slow.answer).turnedAway(t, http.StatusTooManyRequests, "1")
		synctest.Wait()
		e.ask(t, hook, call{}).turnedAway(t, http.StatusTooManyRequests, "1")
		d.leave <- true
		calls.Wait()
		calls.Go(func() { e.ask(t, hook, call{}).allowed(t, call{}, true) })
		<-d.arrived
		e.ask(t, hook, call{}).turnedAway(t, http.StatusTooManyRequests, "1")
		d.leave <- true
		calls.Wait()
	})
}

// TestALargeBodyIsNotSlow sends a body of 1 MiB at 100 KiB per second, while other calls need its slot. The body must
// not be evicted.
func TestALargeBodyIsNotSlow(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		large := call{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 1<<20), 1)}
		slow := e.trickle(t, hook, large.body(), 1, 100<<10)
		for range 9 {
			<-time.After(time.Second)
			e.ask(t, hook, call{}).turnedAway(t, http.StatusTooManyRequests, "1")
		}
		if a := <-slow.answer; a.code != http.StatusOK {
			t.Errorf("got %d %s", a.code, a.body)
		}
	})
}

// TestSlowBodiesReleaseTheirBytes sends slow bodies until MaxInFlightBytes is reached. Once they count as slow, they
// must be evicted to make room for another body. In the end, no memory may be counted.
func TestSlowBodiesReleaseTheirBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{MaxInFlightBytes: 1 << 20, MaxBodyBytes: 1 << 20}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		large := call{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 1<<19), 1)}
		for range 5 {
			_ = e.trickle(t, hook, large.body(), 100<<10, 1)
		}
		synctest.Wait()
		e.ask(t, hook, large).turnedAway(t, http.StatusTooManyRequests, "1")
		<-time.After(4 * time.Second)
		e.ask(t, hook, large).allowed(t, large, true)
		<-time.After(time.Minute)
		synctest.Wait()
		if l := e.server.Load(); l.Bytes != 0 || l.Calls != 0 || l.Waiting != 0 {
			t.Errorf("in the end: %+v", l)
		}
	})
}

// TestSmallSlowBodiesStay sends a large body while slow bodies hold little memory. Evicting them would not make enough
// room, so none may be evicted.
func TestSmallSlowBodiesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlightBytes: 1 << 20, MaxBodyBytes: 1 << 20}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		large := call{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 700<<10), 1)}
		first := make(chan answer)
		go func() { first <- e.post(t, hook.Path()+"?timeout=30s", large.body()) }()
		<-d.arrived
		var slow []trickle
		for range 5 {
			slow = append(slow, e.trickle(t, hook, call{}.body(), 1, 1))
		}
		<-time.After(3 * time.Second)
		e.ask(t, hook, large).turnedAway(t, http.StatusTooManyRequests, "1")
		for _, s := range slow {
			select {
			case a := <-s.answer:
				t.Errorf("got %d", a.code)
			default:
			}
		}
		d.leave <- true
		(<-first).allowed(t, large, true)
		<-time.After(time.Minute)
	})
}

// TestSlowBodiesMakeRoomForConnections fills MaxConnections with slow bodies, some of which are read after the answer.
// New connections must get room within two seconds, and an idle connection that had calls must stay open.
func TestSlowBodiesMakeRoomForConnections(t *testing.T) {
	for _, inFlight := range []int{5, 100} {
		row(t, fmt.Sprintf("%d calls at once", inFlight), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := mutating(admit)
				e := serveInMemory(t, webhook.Options{MaxInFlight: inFlight, MaxConnections: 10}, hook)
				client := e.another()
				dialled := 0
				client.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dialled++
					return e.dial(ctx, network, addr)
				}
				client.ask(t, hook, call{}).allowed(t, call{}, true)
				for range 9 {
					conn := e.dialTLS(t)
					defer func() { _ = conn.Close() }()
					_, _ = fmt.Fprintf(conn, "POST %s?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", hook.Path())
				}
				<-time.After(3 * time.Second)
				for range 9 {
					start := time.Now()
					other := e.another()
					other.ask(t, hook, call{}).allowed(t, call{}, true)
					other.client.CloseIdleConnections()
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("it waited for %s", took)
					}
					conn := e.dialTLS(t) // takes the room of the evicted connection
					defer func() { _ = conn.Close() }()
					_, _ = fmt.Fprintf(conn, "POST %s?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", hook.Path())
					<-time.After(time.Second)
				}
				client.ask(t, hook, call{}).allowed(t, call{}, true)
				if dialled != 1 {
					t.Errorf("%d connections", dialled)
				}
				client.client.CloseIdleConnections()
			})
		})
	}
}

// TestAnswerToASlowBodyClosesTheConnection evicts a slow body. The call must be answered at once, and the server must
// close the connection a second later.
func TestAnswerToASlowBodyClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(func(context.Context, *webhook.Request[corev1.Pod]) error { return errors.New("no") })
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1}, hook)
		conn := e.dialTLS(t)
		_, _ = fmt.Fprintf(conn, "POST %s?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", hook.Path())
		<-time.After(2 * time.Second)
		e.ask(t, hook, call{}).failed(t)
		start, from := time.Now(), bufio.NewReader(conn)
		receive(t, from, http.StatusTooManyRequests, true)
		if took := time.Since(start); took > 0 {
			t.Errorf("answered after %s", took)
		}
		_, _ = io.Copy(io.Discard, from)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the connection ended after %s", took)
		}
		_ = conn.Close()
	})
}
