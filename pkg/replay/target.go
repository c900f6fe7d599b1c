// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/admitkit/admitkit/pkg/record"
)

// A Target is a version of a webhook that answers recorded calls. [Handler] and [URL] return targets.
type Target struct {
	send func(*http.Request) (*http.Response, error)
	base url.URL
}

// Handler returns a target that calls a handler in this process, such as a hook or a mux. The path of a request is the
// recorded one. The handler must be safe for concurrent use.
func Handler(h http.Handler) *Target {
	return &Target{base: url.URL{Scheme: "http", Host: "webhook.invalid"}, send: func(r *http.Request) (_ *http.Response, err error) {
		w := &answerWriter{header: http.Header{}, code: http.StatusOK}
		r.RequestURI = r.URL.RequestURI() // as in a server
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the handler panicked: %v", p)
			}
		}()
		h.ServeHTTP(w, r)
		return &http.Response{StatusCode: w.code, Header: w.header, Body: io.NopCloser(&w.body)}, nil
	}}
}

// URL returns a target that calls a server with a client, or with http.DefaultClient if it is nil. The recorded path is added
// to an address without a path. It fails if the address is not an HTTP URL.
func URL(address string, client *http.Client) (*Target, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("replay: %q is not the URL of a webhook: want https://HOST:PORT or https://HOST:PORT/PATH", address)
	}
	if client == nil {
		client = http.DefaultClient
	}
	return &Target{base: *u, send: client.Do}, nil
}

// maxAnswer is the size of the largest answer that is read, in bytes. It bounds the memory. The API server has no limit, and
// a recorder keeps no larger answer.
const maxAnswer = 8 << 20

// Send sends a recorded call, and returns the HTTP code and the body of the answer. The error is nil if there was an answer.
func (t *Target) Send(ctx context.Context, call *record.Call) (code int, answer []byte, err error) {
	return t.call(ctx, call.Path, call.Request)
}

// call sends a review and returns the code and the body of the answer. The error is nil if there was an answer.
func (t *Target) call(ctx context.Context, path string, body []byte) (code int, answer []byte, err error) {
	u := t.base
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/" + strings.TrimPrefix(path, "/")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	response, err := t.send(r)
	if err != nil {
		return 0, nil, withoutAddress(err)
	}
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	err = errors.Join(err, response.Body.Close())
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)
	}
	return response.StatusCode, answer, withoutAddress(err)
}

// withoutAddress returns the error without the URL and the addresses of the connection, so that the errors of many calls are
// equal.
func withoutAddress(err error) error {
	var called *url.Error
	if errors.As(err, &called) {
		err = called.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		err = fmt.Errorf("%s: %w", network.Op, network.Err)
	}
	return err
}

// An answerWriter is the http.ResponseWriter of a handler in this process.
type answerWriter struct {
	header  http.Header
	code    int
	written bool
	body    bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(code int) {
	if !w.written && code >= http.StatusOK { // 1xx are not the answer
		w.code, w.written = code, true
	}
}

func (w *answerWriter) Write(data []byte) (int, error) {
	w.written = true
	return w.body.Write(data)
}
