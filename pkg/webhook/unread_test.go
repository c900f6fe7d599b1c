// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bufio"
	"bytes"
	"context"
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

// TestABodyThatIsSlowAfterItsAnswer sends a call that is answered before its body was read. The answer must
// come at once. Either it closes the connection, or the server also answers the next call on the connection.
func TestABodyThatIsSlowAfterItsAnswer(t *testing.T) {
	for _, in := range []struct {
		reason      string
		path        string
		contentType string
		length      int
		code        int
		last        bool
	}{
		{reason: "turned away", length: 1 << 20, code: http.StatusTooManyRequests},
		{reason: "turned away and large", length: 5 << 20, code: http.StatusTooManyRequests, last: true},
		{reason: "too large", path: "/validate/pods.example.com", length: 1 << 20, code: http.StatusRequestEntityTooLarge, last: true},
		{reason: "not JSON", path: "/validate/pods.example.com", contentType: "text/plain", length: 1 << 10, code: http.StatusUnsupportedMediaType, last: true},
		{reason: "a path that is not there", path: "/nothing", length: 5 << 20, code: http.StatusNotFound, last: true},
		{reason: "a probe", path: "/healthz", length: 5 << 20, code: http.StatusOK, last: true},
	} {
		row(t, in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newBlockingHandler()
				hook := mutating(d.handle)
				e := serveInMemory(t, webhook.Options{MaxInFlight: 2}, hook, validating(admit).WithMaxBodyBytes(1<<10))
				for range 2 {
					if in.path == "" {
						client := e.another()
						go func() { _, _ = client.try(t.Context(), hook.Path()+"?timeout=30s", call{}.body()) }()
						<-d.arrived
					}
				}
				path, contentType := in.path, in.contentType
				if path == "" {
					path = hook.Path() + "?timeout=2s"
				}
				if contentType == "" {
					contentType = "application/json"
				}
				conn := e.dialTLS(t)
				defer func() { _ = conn.Close() }()
				answers := bufio.NewReader(conn)
				send := func(text string) {
					if _, err := io.WriteString(conn, text); err != nil {
						t.Fatal(err)
					}
				}
				head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, contentType, in.length)
				start := time.Now()
				send(head)
				receive(t, answers, in.code, in.last)
				if took := time.Since(start); took > 0 {
					t.Errorf("answered after %s", took)
				}
				if !in.last {
					<-time.After(5 * time.Second) // longer than the timeout of the call
					send(strings.Repeat(" ", in.length))
					send(head)
					receive(t, answers, in.code, in.last)
				}
				if _, err := answers.ReadByte(); err != io.EOF {
					t.Errorf("the connection does not end: %v", err)
				}
				if took := time.Since(start); took > time.Minute {
					t.Errorf("the connection was there for %s", took)
				}
				close(d.leave)
			})
		})
	}
}

func receive(t *testing.T, from *bufio.Reader, code int, last bool) {
	t.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != code || resp.Close != last {
		t.Errorf("got %s, the last: %t, %v", resp.Status, resp.Close, err)
	}
}

// TestRejectedBodyWithoutLength rejects a call whose body is chunked and never ends. The server must close the
// connection within a minute.
func TestRejectedBodyWithoutLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		e := serveInMemory(t, webhook.Options{MaxInFlight: 1}, hook)
		client := e.another()
		go func() { _, _ = client.try(t.Context(), hook.Path()+"?timeout=30s", call{}.body()) }()
		<-d.arrived
		conn := e.dialTLS(t)
		start := time.Now()
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", hook.Path())
		_, _ = io.Copy(io.Discard, conn)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the connection was there for %s", took)
		}
		_ = conn.Close()
		close(d.leave)
	})
}

// TestASingleCallMayUseTheWholeBodyLimit calls a hook whose body limit equals MaxInFlightBytes, with a body of exactly
// that size. The call must succeed.
func TestASingleCallMayUseTheWholeBodyLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(admit)
		e := serveInMemory(t, webhook.Options{MaxInFlightBytes: 1 << 20, MaxBodyBytes: 1 << 20}, hook)
		body := call{}.body()
		body = append(body, bytes.Repeat([]byte(" "), 1<<20-len(body))...)
		if a := e.post(t, hook.Path(), body); a.code != http.StatusOK {
			t.Errorf("got %d %s", a.code, a.body)
		}
	})
}

// TestClientsCannotFloodTheLog repeats calls that fail. A failure that any client can provoke must be logged once as an
// error, and the failure of a handler each time. A call that the client breaks off must not be logged as an error.
func TestClientsCannotFloodTheLog(t *testing.T) {
	for _, in := range []struct {
		reason string
		lines  int
		do     func(t *testing.T, e *endpoint, hook *webhook.Hook)
	}{
		{reason: "paths", lines: 1, do: func(t *testing.T, e *endpoint, _ *webhook.Hook) {
			e.post(t, "/"+strings.Repeat("x", 5000), nil).failed(t)
		}},
		{reason: "no reviews", lines: 1, do: func(t *testing.T, e *endpoint, hook *webhook.Hook) {
			e.post(t, hook.Path(), []byte("{")).failed(t)
		}},
		{reason: "too large", lines: 1, do: func(t *testing.T, e *endpoint, hook *webhook.Hook) {
			e.post(t, hook.Path(), bytes.Repeat([]byte(" "), 1<<15)).failed(t)
		}},
		{reason: "broken off", lines: 0, do: func(t *testing.T, e *endpoint, hook *webhook.Hook) {
			ctx, cancel := context.WithCancel(t.Context())
			in, out := io.Pipe()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+hook.Path(), in)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			go func() {
				_, _ = out.Write([]byte("{"))
				cancel()
				_ = out.CloseWithError(errors.New("enough"))
			}()
			if resp, err := e.client.Do(req); err == nil {
				t.Errorf("got %s", resp.Status)
				_ = resp.Body.Close()
			}
		}},
		{reason: "given up", lines: 0, do: func(t *testing.T, e *endpoint, hook *webhook.Hook) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, _ = e.try(ctx, hook.Path(), call{name: "waits"}.body())
		}},
		{reason: "the handler fails", lines: 10, do: func(t *testing.T, e *endpoint, hook *webhook.Hook) {
			e.ask(t, hook, call{name: "fails"}).failed(t)
		}},
	} {
		row(t, in.reason, func(t *testing.T) {
			inBoth(t, func(t *testing.T, h2 bool) {
				logs := &logbook{}
				hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
					if req.Name == "waits" {
						<-ctx.Done()
						return ctx.Err()
					}
					return errors.New("oh")
				}).WithMaxBodyBytes(1 << 14)
				e := serveInMemory(t, webhook.Options{Logger: funcr.New(logs.write, funcr.Options{})}, hook)
				e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
				for range 10 {
					in.do(t, e, hook)
					synctest.Wait()
				}
				lines := logs.with("cannot decide")
				if len(lines) != in.lines {
					t.Errorf("%d lines, want %d: %s", len(lines), in.lines, lines)
				}
				for _, line := range lines {
					if len(line) > 1000 {
						t.Errorf("a line of %d bytes", len(line))
					}
				}
			})
		})
	}
}
