// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// ServeHTTP answers one AdmissionReview. A decision is HTTP 200 with a review of the version
// received; a failure to decide is an HTTP error with a metav1.Status, of which the API
// server shows the message to the user and to which it applies the failurePolicy.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	log := h.loggerFor(r.Context())
	if err := h.Check(); err != nil {
		h.fail(w, log, newFailure(http.StatusInternalServerError, "the registration of the hook is invalid: "+err.Error()), "")
		return
	}
	budget := h.budget(r.URL.Query().Get("timeout")) // reading counts, too
	ctx, cancel := context.WithTimeout(r.Context(), budget)
	defer cancel()
	body, err := readBody(w, r, cmp.Or(h.maxBytes, DefaultMaxBodyBytes))
	if err != nil {
		h.fail(w, log, err, "")
		return
	}
	req, err := review.Decode(body)
	if err != nil {
		h.fail(w, log, err, "")
		return
	}
	log = log.WithValues("requestUID", clip(string(req.UID)), "gvk", clip(kindText(req.Kind)), "operation", clip(string(req.Operation)),
		"namespace", clip(req.Namespace), "name", clip(req.Name))
	if err := h.checkHandled(req); err != nil {
		h.fail(w, log, err, req.UID)
		return
	}
	d, p, err := h.call(logr.NewContext(ctx, log), req)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = newFailure(http.StatusGatewayTimeout, fmt.Sprintf("the handler did not decide within %s", budget))
	}
	if err != nil {
		h.fail(w, log, err, req.UID)
		return
	}
	if denial := d.Denial(); denial != nil {
		log.V(1).Info("denied", "code", denial.Code, "reason", denial.Reason)
	}
	var answer []byte
	if h.reg.mutating {
		answer = review.AppendMutating(nil, req, d, p)
	} else {
		answer = review.AppendValidating(nil, req, d)
	}
	write(w, http.StatusOK, answer)
}

func (h *Hook) loggerFor(ctx context.Context) logr.Logger {
	log := contextLogger(ctx)
	if h.logger != nil {
		log = *h.logger
	}
	return log.WithValues("webhook", h.Name())
}

func contextLogger(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return logr.FromSlogHandler(slog.Default().Handler())
}

// readBody checks what can be checked before reading, then reads no more than it may.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, newFailure(http.StatusMethodNotAllowed, fmt.Sprintf("method %s: an AdmissionReview is sent by POST", r.Method))
	}
	if ct := r.Header.Get("Content-Type"); !isJSON(ct) {
		return nil, newFailure(http.StatusUnsupportedMediaType, fmt.Sprintf("content type %q: want application/json", ct))
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, newFailure(http.StatusUnsupportedMediaType, fmt.Sprintf("content encoding %q: the body must not be encoded", enc))
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case err != nil:
		return nil, newFailure(http.StatusBadRequest, "cannot read the body: "+err.Error())
	case len(body) == 0:
		return nil, newFailure(http.StatusBadRequest, "the body is empty: want an AdmissionReview")
	}
	return body, nil
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

func tooLarge(limit int64) error {
	return newFailure(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than the limit of %d bytes", limit))
}

// call runs the handler until it returns, panics or its time is up.
func (h *Hook) call(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
	own := *req // the handler's to change, and to keep when its time is up
	done := make(chan result, 1)
	go func() {
		res := result{err: errors.New("the handler ended its goroutine")}
		defer func() { done <- res }()
		res = h.run(ctx, &own)
	}()
	select {
	case res := <-done:
		return res.decision, res.patch, res.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, nil, ctx.Err()
		}
		return nil, nil, newFailure(http.StatusServiceUnavailable, "the API server closed the connection before the answer")
	}
}

type result struct {
	decision *review.Decision
	patch    patch.Patch
	err      error
}

// run calls the handler and turns a panic into a failure.
func (h *Hook) run(ctx context.Context, req *review.Request) (res result) {
	defer func() {
		if p := recover(); p != nil {
			res = result{err: &panicError{p, string(debug.Stack())}}
		}
	}()
	res.decision, res.patch, res.err = h.admit(ctx, req)
	if res.err != nil {
		_ = res.err.Error() // a typed nil may panic when it is read: then here, where that is caught
	}
	if res.err == nil && res.decision == nil {
		res.err = errors.New("the handler returned neither a decision nor an error")
	}
	return res
}

// budget is the time the handler gets: what the API server allows, less a tenth (100 ms at
// least, 1 s at most) to send the answer, since the parameter is rounded up to a whole second.
// A missing or unreadable parameter leaves the timeoutSeconds of the registration; more than
// the 30 s that a registration may ask for is not believed.
func (h *Hook) budget(parameter string) time.Duration {
	allowed, err := time.ParseDuration(parameter)
	if limit := h.reg.timeout(); err != nil || allowed <= 0 {
		allowed = limit
	}
	allowed = min(allowed, 30*time.Second)
	margin := min(max(allowed/10, 100*time.Millisecond), time.Second)
	return max(allowed-margin, allowed/2)
}

func write(w http.ResponseWriter, code int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the API server is gone: nobody to tell
}
