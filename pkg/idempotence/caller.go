// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
)

// A caller sends a body to a webhook's server.
type caller interface {
	call(ctx context.Context, body []byte) (status int, answer []byte, err error)
}

// A handlerCaller calls an http.Handler in this process.
type handlerCaller struct{ handler http.Handler }

func (c handlerCaller) call(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/?timeout=10s", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.RequestURI, r.Host = r.URL.RequestURI(), "webhook.default.svc:443"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", "kube-apiserver-admission")
	w := &recorder{header: http.Header{}}
	done := make(chan error, 1)
	go func() { done <- c.serve(w, r) }()
	select {
	case err := <-done:
		return max(w.code, http.StatusOK), w.body.Bytes(), err
	case <-ctx.Done(): // the handler is left behind, and its recorder with it
		return 0, nil, fmt.Errorf("the handler did not answer: %w", ctx.Err())
	}
}

func (c handlerCaller) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	c.handler.ServeHTTP(w, r)
	return nil
}

// A recorder keeps what a handler answers.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// A urlCaller calls a server.
type urlCaller struct {
	client *http.Client
	url    string
}

// mostAnswerBytes bounds what is read of an answer.
const mostAnswerBytes = 64 << 20

func (c urlCaller) call(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	q := r.URL.Query()
	q.Set("timeout", "10s")
	r.URL.RawQuery = q.Encode()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", "kube-apiserver-admission")
	response, err := c.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswerBytes))
	return response.StatusCode, answer, err
}
