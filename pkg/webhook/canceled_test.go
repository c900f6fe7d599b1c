// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestAShorterTimeAfterARetryIsATimeout hangs up before and after half of the time that a call may take. The outcome
// must be Canceled before, and TimedOut after. The API server can hang up early after a retry: it sends its full
// timeout again, but waits only for the time that is left.
func TestAShorterTimeAfterARetryIsATimeout(t *testing.T) {
	for after, want := range map[time.Duration]webhook.Outcome{4 * time.Second: webhook.Canceled, 5 * time.Second: webhook.TimedOut} {
		for _, slow := range []string{"handler", "body"} {
			row(t, fmt.Sprint(slow, after), func(t *testing.T) {
				inBoth(t, func(t *testing.T, h2 bool) {
					r, log := &recorder{}, &logbook{}
					hook := mutating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
						<-ctx.Done()
						return ctx.Err()
					})
					e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}, Logger: funcr.New(log.write, funcr.Options{})}, hook)
					e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
					ctx, cancel := context.WithTimeout(t.Context(), after)
					defer cancel()
					var body io.Reader = bytes.NewReader(call{}.body())
					if slow == "body" {
						in, out := io.Pipe()
						context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })
						body = in
					}
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+hook.Path()+"?timeout=10s", body)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Content-Type", "application/json")
					if resp, err := e.client.Do(req); err == nil { // the response may arrive before the client sees that its context has ended
						_ = resp.Body.Close()
					} else if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v", err)
					}
					synctest.Wait()
					if got := r.one(t); got.Outcome != want || got.Err == nil {
						t.Errorf("got %+v, want %s", got, want)
					}
					if logged := len(log.with("cannot decide")) == 1; logged != (want == webhook.TimedOut) {
						t.Errorf("logged: %t", logged)
					}
				})
			})
		}
	}
}

// TestTheClientHangsUp hangs up while the handler is busy. The outcome must be Canceled, unless the handler panics.
func TestTheClientHangsUp(t *testing.T) {
	for _, in := range []struct {
		reason string
		end    func(context.Context) error
		want   webhook.Outcome
	}{
		{"the handler gives up, too", context.Context.Err, webhook.Canceled},
		{"the handler returns its own error", func(ctx context.Context) error { return fmt.Errorf("cannot ask the database: %w", ctx.Err()) }, webhook.Canceled},
		{"the handler does not wrap the error", func(context.Context) error {
			return errors.New("rpc error: code = Canceled desc = context canceled")
		}, webhook.Canceled},
		{"the handler panics", func(context.Context) error { panic("oh") }, webhook.Panicked},
	} {
		row(t, in.reason, func(t *testing.T) {
			inBoth(t, func(t *testing.T, h2 bool) {
				arrived, r, log := make(chan bool), &recorder{}, &logbook{}
				hook := mutating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
					arrived <- true
					<-ctx.Done()
					return in.end(ctx)
				})
				e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}, Logger: funcr.New(log.write, funcr.Options{Verbosity: 1})}, hook)
				e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
				ctx, hangUp := context.WithCancel(t.Context())
				go func() { <-arrived; hangUp() }()
				_, err := e.try(ctx, hook.Path()+"?timeout=5s", call{}.body())
				if err != nil && !errors.Is(err, context.Canceled) { // the response may arrive before the client sees that its context has ended
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				got := r.one(t)
				if h2 && in.want == webhook.Panicked {
					return // the call may be answered before the handler panics
				}
				if got.Outcome != in.want || got.Err == nil {
					t.Errorf("got %+v", got)
				}
				if quiet := len(log.with("cannot decide")) == 0; quiet != (got.Outcome == webhook.Canceled) {
					t.Errorf("got %q", log.with(""))
				}
			})
		})
	}
}

// TestADecisionAfterAHangUpCounts checks that the decision of a handler that ignores its context is reported.
func TestADecisionAfterAHangUpCounts(t *testing.T) {
	for _, in := range []struct {
		err  error
		want webhook.Outcome
	}{{nil, webhook.Allowed}, {webhook.Deny("no"), webhook.Denied}, {errors.New("down"), webhook.Failed}} {
		synctest.Test(t, func(t *testing.T) {
			d, r := newBlockingHandler(), &recorder{}
			hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
				return errors.Join(d.handle(ctx, req), in.err)
			})
			e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}}, hook)
			e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
			ctx, hangUp := context.WithCancel(t.Context())
			go func() { <-d.arrived; hangUp() }()
			_, _ = e.try(ctx, hook.Path()+"?timeout=5s", call{}.body())
			synctest.Wait()
			d.leave <- true
			synctest.Wait()
			if got := r.one(t); got.Outcome != in.want {
				t.Errorf("got %+v, want %s", got, in.want)
			}
		})
	}
}

// TestBodyThatEndsEarly closes the connection or resets the stream in the middle of a body. The outcome must be
// Canceled, and nothing may be logged as an error.
func TestBodyThatEndsEarly(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		r, log := &recorder{}, &logbook{}
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}, Logger: funcr.New(log.write, funcr.Options{})}, hook)
		transport := e.client.Transport.(*http.Transport)
		transport.ForceAttemptHTTP2 = h2
		for range 20 { // over HTTP/2 the stream and the context end in any order
			ctx, hangUp := context.WithCancel(t.Context())
			body := io.MultiReader(bytes.NewReader(call{}.body()[:100]), readerFunc(func([]byte) (int, error) {
				synctest.Wait() // until the server has read the bytes that were sent
				hangUp()
				<-ctx.Done()
				return 0, ctx.Err()
			}))
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+hook.Path()+"?timeout=5s", body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if resp, err := e.client.Do(req); err == nil { // the answer came before the client hung up
				_ = resp.Body.Close()
			}
			transport.CloseIdleConnections()
			synctest.Wait()
		}
		for _, c := range r.calls {
			if c.Outcome != webhook.Canceled || c.Err == nil || !strings.HasPrefix(c.Err.Error(), "cannot read the body: ") {
				t.Fatalf("got %+v", c)
			}
		}
		if len(r.calls) != 20 || len(log.with("cannot decide")) > 0 {
			t.Errorf("%d calls, %q", len(r.calls), log.with(""))
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestFailuresWithAConnectedClientAreNotCanceled cancels contexts and sends an invalid body while the client stays
// connected. The outcome must be Failed.
func TestFailuresWithAConnectedClientAreNotCanceled(t *testing.T) {
	canceled := func(context.Context, *webhook.Request[corev1.Pod]) error { return context.Canceled }
	ends := scripted(func(ctx context.Context) (context.Context, func(*webhook.Observation)) {
		ctx, end := context.WithCancel(ctx)
		end()
		return ctx, nil
	})
	for _, in := range []struct {
		reason    string
		handler   podHandler
		observers []webhook.Observer
	}{
		{"the handler canceled a context of its own", canceled, nil},
		{"an observer ended the context", func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error { <-ctx.Done(); return ctx.Err() }, []webhook.Observer{ends}},
	} {
		row(t, in.reason, func(t *testing.T) {
			inBoth(t, func(t *testing.T, h2 bool) {
				r, log := &recorder{}, &logbook{}
				hook := mutating(in.handler)
				e := serveInMemory(t, webhook.Options{Observers: append(in.observers, r), Logger: funcr.New(log.write, funcr.Options{})}, hook)
				e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
				e.ask(t, hook, call{}).failed(t)
				if got := r.one(t); got.Outcome != webhook.Failed || len(log.with("cannot decide")) != 1 {
					t.Errorf("got %+v, %q", got, log.with(""))
				}
			})
		})
	}
	t.Run("its body is chunked, and badly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			hook := mutating(admit)
			e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}}, hook)
			conn, err := e.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			secure := tls.Client(conn, &tls.Config{RootCAs: e.roots(), ServerName: "127.0.0.1"})
			defer func() { _ = secure.Close() }()
			_, err = io.WriteString(secure, "POST "+hook.Path()+" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := r.one(t); got.Outcome != webhook.Failed || got.Code != http.StatusBadRequest {
				t.Errorf("got %+v", got)
			}
		})
	})
}

// TestALateBodyIsATimeout sends a body that does not arrive before the deadline. The outcome must be TimedOut, not
// Canceled, although net/http cancels the context as for a client that hung up.
func TestALateBodyIsATimeout(t *testing.T) {
	inBoth(t, func(t *testing.T, h2 bool) {
		r, log := &recorder{}, &logbook{}
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}, Logger: funcr.New(log.write, funcr.Options{})}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
		defer giveUp()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+hook.Path()+"?timeout=5s", readerFunc(func([]byte) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if resp, err := e.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
		synctest.Wait()
		if got := r.one(t); got.Outcome != webhook.TimedOut || len(log.with("the body did not arrive")) != 1 {
			t.Errorf("got %+v, %q", got, log.with(""))
		}
	})
}
