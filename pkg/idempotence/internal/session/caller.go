// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"time"
)

// A Caller sends a request body to a webhook.
type Caller interface {
	Call(ctx context.Context, body []byte) (status int, answer []byte, err error)
}

// An instance is a handler in this process. It is created at its first call, because many instances are never called.
type instance struct {
	newHandler func() http.Handler
	handler    http.Handler
	connection *Connection
}

// made returns the handler, and creates it in the first call. A panic or a nil handler is a mistake in the test and
// ends the run.
func (c *instance) made() (handler http.Handler, err error) {
	if c.handler != nil {
		return c.handler, nil
	}
	if c.handler, err = c.make(); err != nil {
		c.connection.fail(NoHandler, err)
	}
	return c.handler, err
}

func (c *instance) make() (handler http.Handler, err error) {
	defer func() {
		if p := recover(); p != nil {
			handler, err = nil, fmt.Errorf("newHandler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	handler = c.newHandler()
	if v := reflect.ValueOf(handler); handler == nil || v.Kind() == reflect.Func && v.IsNil() {
		return nil, errors.New("newHandler returned nil, not a handler")
	}
	return handler, nil
}

func (c *instance) Call(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err // the run is over: do not call the handler
	}
	if _, err := c.made(); err != nil {
		return 0, nil, err
	}
	r, err := newRequest(ctx, "/", body)
	if err != nil {
		return 0, nil, err
	}
	r, left := served(r)
	w := &recorder{header: http.Header{}}
	answered, err := c.connection.call(ctx, func() error {
		defer left()
		return c.serve(w, r)
	})
	if !answered { // the handler may still write to its recorder
		return 0, nil, fmt.Errorf("the handler did not answer: %w", ctx.Err())
	}
	return max(w.code, http.StatusOK), w.body.Bytes(), err
}

// served returns the request as a server passes it to its handler: without the deadline, which a server does not know.
// The request's context ends when the client's does, or when the returned function is called.
func served(r *http.Request) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(r.Context(), cancel)
	r = r.WithContext(ctx)
	r.RequestURI, r.Host = r.URL.RequestURI(), "webhook.default.svc:443"
	r.RemoteAddr = "127.0.0.1:0"
	r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, NegotiatedProtocol: "http/1.1"}
	r.GetBody = nil
	return r, func() { stop(); cancel() }
}

func (c *instance) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	c.handler.ServeHTTP(w, r)
	return nil
}

// newRequest returns the HTTP request that the API server sends.
func newRequest(ctx context.Context, url string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	q.Set("timeout", timeLeft(ctx).String())
	r.URL.RawQuery = q.Encode()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", "kube-apiserver-admission")
	return r, nil
}

// timeLeft returns the timeout parameter that the API server sends: whole seconds, rounded up.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 10 * time.Second
	}
	return max((time.Until(deadline) + time.Second - 1).Truncate(time.Second), time.Second)
}

// A recorder records a handler's response, as a server sends it.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, unless it is set already. A status below 200 is not the final one.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= http.StatusOK {
		r.code = code
	}
}

// Write writes to the body. The first call sets the status 200, unless a status is set. Some statuses have no body.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.code == http.StatusNoContent || r.code == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	return r.body.Write(b)
}

// Flush implements http.Flusher.
func (r *recorder) Flush() { r.WriteHeader(http.StatusOK) }
