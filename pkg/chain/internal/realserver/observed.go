// SPDX-License-Identifier: Apache-2.0

package realserver

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

// observed collects the webhook calls of one request, as the proxy sees them.
type observed struct {
	mu    sync.Mutex
	calls []*ObservedCall
}

// An ObservedCall is one webhook call as the proxy saw it. The API server repeats a review after Retry-After or a
// redirect. Repetitions have the same uid and belong to one call.
type ObservedCall struct {
	Target   *Target
	uid      types.UID
	Attempts int
	Began    time.Time
	Ended    time.Time // zero until the handler returns
	Request  []byte
	Status   int
	header   http.Header
	Response []byte
	Panicked bool   // the handler panicked
	Failure  string // why there is no response, as far as the proxy knows
}

// begin records an attempt to send a review to a webhook.
func (o *observed) begin(t *Target, review []byte) *ObservedCall {
	uid := openReview(review).Request.UID
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.calls {
		if c.Target == t && c.uid == uid {
			c.Attempts++
			c.Ended, c.Status, c.header, c.Response, c.Failure, c.Panicked = time.Time{}, 0, nil, nil, "", false
			return c
		}
	}
	c := &ObservedCall{Target: t, uid: uid, Began: time.Now(), Request: review, Attempts: 1}
	o.calls = append(o.calls, c)
	return c
}

// panicked returns the text of ObservedCall.Failure for a handler that panicked.
func panicked(value string) string { return "the handler panicked: " + value }

// end records the response of an attempt, or the value with which the handler panicked.
func (o *observed) end(c *ObservedCall, w *answerWriter, failure any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.Ended = time.Now()
	if failure != nil {
		c.Failure = fmt.Sprint(failure)
		if _, ok := c.Target.handler.(*httputil.ReverseProxy); !ok && failure != any(context.DeadlineExceeded) {
			c.Failure, c.Panicked = panicked(c.Failure), true
		}
		return
	}
	c.Status, c.header, c.Response = w.answered()
}

// All returns the calls in the order in which they began. Validating webhooks are called concurrently, so their calls
// are in the order of the configurations.
func (o *observed) All() []ObservedCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	var calls []ObservedCall
	for _, c := range o.calls {
		calls = append(calls, *c)
	}
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && calls[from].sameStage(calls[to]) && !calledIn(calls[from:to], calls[to].Target) {
			to++
		}
		slices.SortStableFunc(calls[from:to], func(a, b ObservedCall) int { return cmp.Compare(a.Target.Index, b.Target.Index) })
		from = to
	}
	return calls
}

// calledIn reports whether calls has a call of the webhook. A second call of a validating webhook means that the API
// server has begun the admission again.
func calledIn(calls []ObservedCall, t *Target) bool {
	return slices.ContainsFunc(calls, func(c ObservedCall) bool { return c.Target == t })
}

// sameStage reports whether both calls are of validating webhooks, which are called concurrently.
func (c ObservedCall) sameStage(d ObservedCall) bool { return !c.Target.Mutating && !d.Target.Mutating }

// An answerWriter records a handler's response while it is sent.
type answerWriter struct {
	http.ResponseWriter
	prefix string // path prefix of the webhook at the proxy

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

// redirect adds the prefix to the Location of a redirect within the webhook's server.
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

// Flush sends the buffered part of the response, for handlers that stream.
func (w *answerWriter) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // an HTTP/1.1 connection supports it
}

// answered returns the response of a handler that returned. The status is 200 if the handler wrote nothing.
func (w *answerWriter) answered() (int, http.Header, []byte) {
	if w.status == 0 {
		return http.StatusOK, w.Header().Clone(), []byte{}
	}
	return w.status, w.header, append([]byte{}, w.body.Bytes()...)
}
