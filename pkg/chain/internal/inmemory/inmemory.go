// SPDX-License-Identifier: Apache-2.0

// Package inmemory provides an HTTP transport to a handler in the same process.
package inmemory

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// Transport is an http.RoundTripper that calls a handler in this process. The handler gets the request as net/http's
// server would pass it.
type Transport struct{ Handler http.Handler }

// RoundTrip returns when the request's context ends, even if the handler is still running, as a network client would.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	// A server does not know the deadline of its client. It only notices that the client has disconnected.
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	stop := context.AfterFunc(req.Context(), cancel)
	w := NewResponse()
	done := make(chan error, 1)
	go func() {
		defer func() {
			stop()
			cancel()
			if w.returned {
				done <- nil
			} else {
				done <- PanicError{recover()}
			}
		}()
		t.Handler.ServeHTTP(w, served(ctx, req))
		w.returned = true
	}()
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case err := <-done:
		if err != nil {
			return nil, err
		}
	}
	return w.response(req)
}

// served returns the request as a server passes it to its handler.
func served(ctx context.Context, req *http.Request) *http.Request {
	r := req.Clone(ctx)
	r.RequestURI = req.URL.RequestURI()
	r.URL.Scheme, r.URL.Host = "", ""
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.RemoteAddr = "127.0.0.1:0"
	r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, NegotiatedProtocol: "http/1.1"}
	r.GetBody = nil
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	return r
}

// PanicError is the error that the client gets if the handler panics. It unwraps to io.EOF, as if the server had closed
// the connection.
type PanicError struct{ value any }

func (p PanicError) Error() string { return io.EOF.Error() }

func (p PanicError) Unwrap() error { return io.EOF }

// Cause says how the handler ended: with a panic or without returning.
func (p PanicError) Cause() string {
	if p.value == nil {
		return "the handler did not return"
	}
	return fmt.Sprintf("the handler panicked: %v", p.value)
}

// A Response is an http.ResponseWriter that keeps the response in memory.
type Response struct {
	header, sent http.Header // sent has the headers at the time of WriteHeader
	status       int
	body         bytes.Buffer
	returned     bool
}

// Header implements http.ResponseWriter.
func (a *Response) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. It ignores informational codes.
func (a *Response) WriteHeader(status int) {
	if a.sent != nil || status < 200 { // informational codes are not the response
		return
	}
	a.status, a.sent = status, a.header.Clone()
}

func (a *Response) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// Flush sets the status to 200 unless it is set. The body is kept until the handler returns.
func (a *Response) Flush() { a.WriteHeader(http.StatusOK) }

func (a *Response) response(req *http.Request) (*http.Response, error) {
	a.WriteHeader(http.StatusOK)
	if a.sent == nil {
		a.sent = http.Header{}
	}
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.sent, Request: req, TLS: &tls.ConnectionState{},
	}
	if a.body.Len() > 0 && len(a.sent["Content-Type"]) == 0 && a.sent.Get("Content-Encoding") == "" {
		a.sent.Set("Content-Type", http.DetectContentType(a.body.Bytes()))
	}
	resp.ContentLength = int64(a.body.Len())
	resp.Body = io.NopCloser(&a.body)
	if a.sent.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(&a.body)
		if err != nil {
			return nil, err
		}
		resp.Body, resp.ContentLength, resp.Uncompressed = plain, -1, true
		a.sent.Del("Content-Encoding")
		a.sent.Del("Content-Length")
	}
	return resp, nil
}

// NewResponse returns an empty response.
func NewResponse() *Response { return &Response{header: http.Header{}} }
