// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// turnedAway checks that the answer asks the client to repeat the call after retryAfter seconds.
// If retryAfter is empty, the answer must not ask for that.
func (a answer) turnedAway(tb testing.TB, code int, retryAfter string) {
	tb.Helper()
	if status := a.failed(tb); a.code != code || a.header.Get("Retry-After") != retryAfter || status.Code != int32(code) {
		tb.Fatalf("got %d with Retry-After %q, want %d with %q: %s", a.code, a.header.Get("Retry-After"), code, retryAfter, a.body)
	}
}

// A blockingHandler has a handler that sends to arrived in each call, and then waits for a value from leave.
type blockingHandler struct{ arrived, leave chan bool }

func newBlockingHandler() blockingHandler { return blockingHandler{make(chan bool), make(chan bool)} }

func (d blockingHandler) handle(context.Context, *webhook.Request[corev1.Pod]) error {
	d.arrived <- true
	<-d.leave
	return nil
}

// inBoth runs a test with a fake clock, once for HTTP/1.1 and once for HTTP/2.
func inBoth(t *testing.T, test func(t *testing.T, h2 bool)) {
	t.Helper()
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2 %t", h2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, h2) })
		})
	}
}

func TestMaxInFlight(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		d, r := newBlockingHandler(), &recorder{}
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 2, Observers: []webhook.Observer{r}}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() { e.ask(t, hook, call{}).allowed(t, call{}, true) })
			<-d.arrived
		}
		a := e.ask(t, hook, call{})
		a.turnedAway(t, http.StatusTooManyRequests, "1")
		if status := a.failed(t); status.Reason != "TooManyRequests" || status.Message != "the webhook server is busy: 2 calls are in flight, which is the limit" ||
			status.Details.RetryAfterSeconds != 1 {
			t.Errorf("got %s", a.body)
		}
		e.post(t, hook.Path()+"?timeout=1s", call{}.body()).turnedAway(t, http.StatusTooManyRequests, "") // a budget that is too short for a retry
		d.leave <- true
		synctest.Wait()
		calls.Go(func() { e.ask(t, hook, call{}).allowed(t, call{}, true) })
		<-d.arrived
		close(d.leave)
		calls.Wait()
		if got := fmt.Sprint(r.outcomes()); got != "[shed shed allowed allowed allowed]" {
			t.Errorf("got %s", got)
		}
	})
}

// TestAHandlerThatIsLeftBehindCounts checks that a call counts for MaxInFlight until its handler returns, even if the
// call was answered earlier because of its deadline.
func TestAHandlerThatIsLeftBehindCounts(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		go func() { <-d.arrived }()
		if status := e.ask(t, hook, call{}).failed(t); status.Code != http.StatusGatewayTimeout {
			t.Errorf("got %v", status)
		}
		e.ask(t, hook, call{}).turnedAway(t, http.StatusTooManyRequests, "1")
		d.leave <- true
		synctest.Wait()
		go func() { <-d.arrived; d.leave <- true }()
		e.ask(t, hook, call{}).allowed(t, call{}, true)
	})
}

// TestEveryCallReleasesItsPlace makes one call after another with MaxInFlight 1. The calls end in every possible way,
// and each must release its slot and its memory.
func TestEveryCallReleasesItsPlace(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
			switch req.Name {
			case "panic":
				panic("oh")
			case "late":
				<-ctx.Done()
			case "behind":
				<-time.After(time.Minute)
			}
			return nil
		})
		large := call{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 2<<20), 1)}
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1, MaxInFlightBytes: 8 << 20, MaxBodyBytes: 4 << 20}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		for range 5 {
			for _, name := range []string{"", "panic", "late", "behind"} {
				e.ask(t, hook, call{name: name})
				<-time.After(time.Minute)
			}
			e.post(t, hook.Path(), []byte("{}")).failed(t)
			e.post(t, hook.Path(), bytes.Repeat([]byte(" "), 5<<20)).failed(t)
			synctest.Wait()
			e.ask(t, hook, large).allowed(t, large, true)
		}
	})
}

// TestMaxInFlightBytes sends two bodies that together exceed the limit. The second call must be answered 429, and must
// succeed when repeated after the first.
func TestMaxInFlightBytes(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		inBoth(t, func(t *testing.T, h2 bool) {
			r := &recorder{}
			hook := mutating(admit)
			e := serveInMemory(t, webhook.Options{MaxInFlightBytes: 5 << 19, MaxBodyBytes: 2 << 20, Observers: []webhook.Observer{r}}, hook)
			transport := e.client.Transport.(*http.Transport)
			transport.ForceAttemptHTTP2 = h2
			body := call{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 1500<<10), 1)}.body()
			send := func(reader io.Reader) answer {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+hook.Path()+"?timeout=5s", reader)
				if err != nil {
					t.Fatal(err)
				}
				if req.Header.Set("Content-Type", "application/json"); !chunked {
					req.ContentLength = int64(len(body))
				}
				resp, err := e.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return answer{code: resp.StatusCode, header: resp.Header, body: got}
			}
			in, out := io.Pipe()
			first := make(chan answer)
			go func() { first <- send(in) }()
			if _, err := out.Write(body[:1400<<10]); err != nil { // the buffer of the call is then larger than the bytes that have arrived
				t.Fatal(err)
			}
			synctest.Wait()
			send(onlyReader{bytes.NewReader(body)}).turnedAway(t, http.StatusTooManyRequests, "1")
			if _, err := out.Write(body[1400<<10:]); err != nil || out.Close() != nil {
				t.Fatal(err)
			}
			if a := <-first; a.code != http.StatusOK {
				t.Errorf("the first: %d %s", a.code, a.body)
			}
			if a := send(onlyReader{bytes.NewReader(body)}); a.code != http.StatusOK {
				t.Errorf("after the first: %d %s", a.code, a.body)
			}
			if got := fmt.Sprint(r.outcomes()); got != "[shed allowed allowed]" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestSmallCallsHoldLittleMemory makes 100 small calls after calls with larger bodies. The small calls must not count
// the memory of the larger bodies, or they would exceed MaxInFlightBytes.
func TestSmallCallsHoldLittleMemory(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlightBytes: 1 << 20, MaxBodyBytes: 1 << 20}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		for _, c := range []call{{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 58<<10), 1)}, {}} {
			var calls sync.WaitGroup
			n := 10
			if c.object == "" {
				n = 100
			}
			for range n {
				calls.Go(func() { e.ask(t, hook, c).allowed(t, c, true) })
				<-d.arrived
			}
			for range n {
				d.leave <- true
			}
			calls.Wait()
		}
	})
}

// onlyReader hides the length of a body.
type onlyReader struct{ io.Reader }

// TestAnnouncedBytesTakeNoMemory runs clients whose Content-Length headers together exceed MaxInFlightBytes, but which
// send almost nothing. Another call must succeed.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{MaxInFlightBytes: 32 << 20}, hook)
		for range 20 {
			conn := e.dialTLS(t)
			if _, err := fmt.Fprintf(conn, "POST %s?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", hook.Path(), 16<<20); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
		}
		synctest.Wait()
		e.ask(t, hook, call{}).allowed(t, call{}, true)
	})
}

// dialTLS returns a new TLS connection for HTTP/1.1.
func (e *endpoint) dialTLS(tb testing.TB) *tls.Conn {
	tb.Helper()
	dial := e.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	raw, err := dial(tb.Context(), "tcp", strings.TrimPrefix(e.url, "https://"))
	if err != nil {
		tb.Fatal(err)
	}
	config := e.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = "127.0.0.1", []string{"http/1.1"}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return conn
}

// TestConnectionOfARefusedCallStaysOpen refuses calls with a body of 1 MiB. The connection must stay open, so that the
// API server can repeat the call on it.
func TestConnectionOfARefusedCallStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		dialled := 0
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1}, hook)
		transport := e.client.Transport.(*http.Transport)
		transport.ForceAttemptHTTP2 = false
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled++
			return e.dial(ctx, network, addr)
		}
		large := call{object: strings.Replace(thePod, "app:1", strings.Repeat("x", 1<<20), 1)}
		var calls sync.WaitGroup
		calls.Go(func() { e.ask(t, hook, large).allowed(t, large, true) })
		<-d.arrived
		for range 5 {
			e.ask(t, hook, large).turnedAway(t, http.StatusTooManyRequests, "1")
			synctest.Wait()
		}
		close(d.leave)
		calls.Wait()
		if dialled != 2 {
			t.Errorf("%d connections for two calls at a time", dialled)
		}
	})
}

// TestASlowBodyEndsWithItsCall sends a body that does not arrive before the deadline of its call. The call must time
// out, and later calls on the connection must succeed.
func TestASlowBodyEndsWithItsCall(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		r := &recorder{}
		hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(800 * time.Millisecond):
				return nil
			}
		})
		e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		for _, timeout := range []string{"1s", "2s", "30s"} {
			in, out := io.Pipe()
			start := time.Now()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+hook.Path()+"?timeout="+timeout, in)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			go func() { _, _ = out.Write([]byte("{")) }()
			resp, err := e.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if _ = out.CloseWithError(errors.New("enough")); resp.StatusCode != http.StatusGatewayTimeout || !strings.Contains(string(body), "context deadline exceeded: the body did not arrive within") {
				t.Errorf("%d %s %v", resp.StatusCode, body, err)
			}
			if allowed, _ := time.ParseDuration(timeout); time.Since(start) > allowed {
				t.Errorf("answered after %s", time.Since(start))
			}
			for range 3 {
				e.post(t, hook.Path()+"?timeout=1s", call{}.body()).allowed(t, call{}, true)
			}
		}
		for _, o := range r.outcomes() {
			if o != webhook.TimedOut && o != webhook.Allowed {
				t.Errorf("got %v", r.outcomes())
			}
		}
	})
}

// TestBodyLimitAboveMaxInFlightBytesIsAnError checks that Start reports a body limit above MaxInFlightBytes, once for
// all hooks with that limit.
func TestBodyLimitAboveMaxInFlightBytesIsAnError(t *testing.T) {
	_, config := certificate(t)
	named := func(name string, most int64) *webhook.Hook {
		hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: name + ".example.com", Rules: everything}, admit)
		if most != 0 {
			hook = hook.WithMaxBodyBytes(most)
		}
		return hook
	}
	const have = " bytes, but the limit of all bodies in flight is 1048576: raise Options.MaxInFlightBytes or lower MaxBodyBytes"
	for _, in := range []struct {
		reason string
		hooks  []*webhook.Hook
		want   string
	}{
		{"one", []*webhook.Hook{named("a", 0), named("b", 1<<20)}, "webhook a.example.com: the limit of a body is 16777216" + have},
		{"a few, of two limits", []*webhook.Hook{named("a", 0), named("b", 2<<20), named("c", 0), named("d", 1000)},
			"webhooks a.example.com, c.example.com: the limit of a body is 16777216" + have + "\nwebhook b.example.com: the limit of a body is 2097152" + have},
		{"many", []*webhook.Hook{named("a", 0), named("b", 0), named("c", 0), named("d", 0), named("e", 0)},
			"webhooks a.example.com, b.example.com, c.example.com and 2 more: the limit of a body is 16777216" + have},
	} {
		row(t, in.reason, func(t *testing.T) {
			server := webhook.NewServer(webhook.Options{TLSConfig: config, Addr: "127.0.0.1:0", MaxInFlightBytes: 1 << 20}, in.hooks...)
			if err := server.Start(t.Context()); err == nil || err.Error() != "cannot start the webhook server: "+in.want {
				t.Errorf("got %v", err)
			}
		})
	}
}
