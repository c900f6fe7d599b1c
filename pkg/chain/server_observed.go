// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// observed are the calls of webhooks over one request, as the proxy sees them.
type observed struct {
	mu    sync.Mutex
	calls []*observedCall
}

// An observedCall is one webhook call as the proxy saw it. The API server repeats a review after Retry-After or a
// redirect. Repetitions have the same uid and belong to one call.
type observedCall struct {
	target   *target
	uid      types.UID
	attempts int
	began    time.Time
	ended    time.Time // zero while nothing was answered
	request  []byte
	status   int
	header   http.Header
	response []byte
	failure  string // why nothing was answered, as far as the proxy knows
}

func (o *observed) begin(t *target, review []byte) *observedCall {
	uid := open(review).Request.UID
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.calls {
		if c.target == t && c.uid == uid {
			c.attempts++
			c.ended, c.status, c.header, c.response, c.failure = time.Time{}, 0, nil, nil, ""
			return c
		}
	}
	c := &observedCall{target: t, uid: uid, began: time.Now(), request: review, attempts: 1}
	o.calls = append(o.calls, c)
	return c
}

// panickedPrefix begins the failure of a handler that did not come back.
const panickedPrefix = "the handler panicked: "

func (o *observed) end(c *observedCall, w *answerWriter, failure any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.ended = time.Now()
	if failure != nil {
		c.failure = fmt.Sprint(failure)
		if _, ok := c.target.handler.(*httputil.ReverseProxy); !ok && failure != any(context.DeadlineExceeded) {
			c.failure = panickedPrefix + c.failure
		}
		return
	}
	c.status, c.header, c.response = w.answered()
}

// all returns the calls in the order in which they began, those of validating webhooks, which
// are made at the same time, in the order of their configurations.
func (o *observed) all() []observedCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	var calls []observedCall
	for _, c := range o.calls {
		calls = append(calls, *c)
	}
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && calls[from].sameStage(calls[to]) && !calledIn(calls[from:to], calls[to].target) {
			to++
		}
		slices.SortStableFunc(calls[from:to], func(a, b observedCall) int { return cmp.Compare(a.target.index, b.target.index) })
		from = to
	}
	return calls
}

// calledIn reports whether a webhook is called already: then another call begins the next stage.
func calledIn(calls []observedCall, t *target) bool {
	return slices.ContainsFunc(calls, func(c observedCall) bool { return c.target == t })
}

// sameStage reports whether two calls may be swapped.
func (c observedCall) sameStage(d observedCall) bool { return !c.target.mutating && !d.target.mutating }

// An answerWriter records a handler's response while it is sent.
type answerWriter struct {
	http.ResponseWriter
	prefix string // of the paths of the webhook

	status int
	header http.Header
	body   bytes.Buffer
}

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.header = w.Header().Clone()
		w.redirect()
	}
	w.ResponseWriter.WriteHeader(status)
}

// redirect keeps a redirect within the webhook's own paths.
func (w *answerWriter) redirect() {
	to, err := url.Parse(w.Header().Get("Location"))
	if err == nil && to.Host == "" && strings.HasPrefix(to.Path, "/") {
		to.Path = w.prefix + to.Path
		w.Header().Set("Location", to.String())
	}
}

func (w *answerWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.body.Write(b)
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what was written so far, for handlers that stream.
func (w *answerWriter) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // it is an HTTP/1.1 connection, which can
}

// answered returns the answer of a handler that came back: 200 if it said nothing.
func (w *answerWriter) answered() (int, http.Header, []byte) {
	if w.status == 0 {
		return http.StatusOK, w.Header().Clone(), []byte{}
	}
	return w.status, w.header, append([]byte{}, w.body.Bytes()...)
}
