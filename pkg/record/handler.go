// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Handler returns a handler that passes all requests on to next, and records the calls of a webhook among them. It is for
// handlers that are not hooks of package webhook. It removes the header Accept-Encoding, so that the answer is not
// compressed.
func (r *Recorder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost || req.Body == nil || r.closing.Load() {
			next.ServeHTTP(w, req)
			return
		}
		start := time.Now()
		c := &callCopy{recorder: r}
		own := req.Clone(req.Context())
		own.Header.Del("Accept-Encoding")
		own.Body = &copiedBody{ReadCloser: req.Body, to: c, length: req.ContentLength}
		own.GetBody = nil
		returned := false
		defer func() { // also if next panics to end the connection
			took := time.Since(start)
			if returned && c.isAnswered() {
				_ = http.NewResponseController(w).Flush() // so that the client does not wait for what follows
			}
			c.end(req, took)
		}()
		next.ServeHTTP(&copiedWriter{ResponseWriter: w, to: c}, own)
		returned = true
	})
}

// A callCopy collects the request and the answer of a call in progress.
type callCopy struct {
	recorder *Recorder

	mu       sync.Mutex // next may read the body in another goroutine, even after its answer
	body     []byte
	answer   []byte
	complete bool // the body was read to its end
	code     int  // 0 if there was no answer
	failed   bool // there was no memory for the copy
	ended    bool
}

func (c *callCopy) isAnswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code != 0
}

// append appends p to one of the copies.
func (c *callCopy) append(to *[]byte, p []byte) {
	switch {
	case c.ended || c.failed || len(p) == 0:
	case len(c.body)+len(c.answer)+len(p) > maxCallBytes || !c.recorder.reserve(int64(len(p))):
		c.recorder.queueBytes.Add(-int64(len(c.body) + len(c.answer)))
		c.body, c.answer, c.failed = nil, nil, true
	default:
		*to = append(*to, p...)
	}
}

// end records the call.
func (c *callCopy) end(req *http.Request, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	r := c.recorder
	r.queueBytes.Add(-int64(len(c.body) + len(c.answer)))
	if c.failed {
		r.counts.calls.Add(1)
		r.counts.queueFull.Add(1)
		return
	}
	if !c.complete || len(c.body) == 0 {
		return // an incomplete request cannot be replayed
	}
	o := &ended{path: req.URL.Path, body: c.body, answer: c.answer, Observation: &webhook.Observation{
		BodyBytes: len(c.body), AnswerBytes: len(c.answer), Duration: took,
	}}
	if request, err := review.Decode(c.body); err == nil {
		o.Kind, o.Operation, o.DryRun = request.Kind, request.Operation, request.DryRun
	}
	o.Outcome, o.Code = outcomeOf(c.code, c.answer)
	o.Mutating = o.Outcome == webhook.Mutated
	if o.Outcome == webhook.Failed && req.Context().Err() != nil {
		o.Outcome = webhook.Canceled
	}
	r.observe(o)
}

// outcomeOf returns the outcome of a call, as the API server sees it.
func outcomeOf(code int, answer []byte) (webhook.Outcome, int32) {
	if code < http.StatusOK || code > http.StatusPartialContent {
		return webhook.Failed, int32(code)
	}
	var got struct {
		Response *struct {
			Allowed bool
			Status  struct{ Code int32 }
			Patch   []byte
		}
	}
	switch err := json.Unmarshal(answer, &got); {
	case err != nil || got.Response == nil:
		return webhook.Failed, int32(code)
	case !got.Response.Allowed:
		if got.Response.Status.Code < http.StatusBadRequest {
			return webhook.Denied, http.StatusBadRequest // the API server sends this code to the user
		}
		return webhook.Denied, got.Response.Status.Code
	case len(got.Response.Patch) > 0:
		return webhook.Mutated, int32(code)
	}
	return webhook.Allowed, int32(code)
}

// A copiedBody copies the bytes that next reads from a request body.
type copiedBody struct {
	io.ReadCloser
	to     *callCopy
	length int64 // of the body in bytes, or -1 if unknown
}

func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	c := b.to
	c.mu.Lock()
	defer c.mu.Unlock()
	c.append(&c.body, p[:n])
	if errors.Is(err, io.EOF) || b.length >= 0 && int64(len(c.body)) == b.length {
		c.complete = true
	}
	return n, err
}

// A copiedWriter copies an answer.
type copiedWriter struct {
	http.ResponseWriter
	to *callCopy
}

func (w *copiedWriter) WriteHeader(code int) {
	w.to.mu.Lock()
	if w.to.code < http.StatusOK { // 1xx are not the answer
		w.to.code = code
	}
	w.to.mu.Unlock()
	w.ResponseWriter.WriteHeader(code)
}

func (w *copiedWriter) Write(p []byte) (int, error) {
	c := w.to
	c.mu.Lock()
	c.code = cmp.Or(c.code, http.StatusOK)
	c.append(&c.answer, p)
	c.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *copiedWriter) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot flush sends later
}

// Hijack implements http.Hijacker. An answer on the connection itself is not recorded.
func (w *copiedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *copiedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
