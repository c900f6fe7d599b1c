// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestAPanicAfterTheDeadlineIsLogged calls handlers that end after the call was answered. A panic must be logged. An
// error or a decision must not.
func TestAPanicAfterTheDeadlineIsLogged(t *testing.T) {
	for _, in := range []struct {
		reason string
		end    func() error
		want   string // the second log line; the first is about the answer
	}{
		{"a panic", func() error { panic("oh") }, `"msg"="a handler panicked after its call was over" "error"="the handler panicked: oh" "webhook"="pods.example.com" "requestUID"="u-1"`},
		{"an error that panics", func() error { return (*failing)(nil) }, `"error"="the handler panicked: runtime error: invalid memory address`},
		{"a decision", func() error { return webhook.Deny("no") }, ""},
		{"an error", func() error { return errors.New("no") }, ""},
	} {
		row(t, in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				answered := make(chan bool)
				hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error {
					<-answered
					return in.end()
				}).WithLogger(logger)
				want(t, postHTTP2(t, hook, "?timeout=5s", call{}.body()).failed(t).Message, "context deadline exceeded: the handler did not decide within 4.5s")
				close(answered)
				synctest.Wait()
				switch {
				case in.want == "" && len(lines) == 1:
				case in.want != "" && len(lines) == 2 && strings.Contains(lines[1], in.want) && strings.Contains(lines[1], `exchange_test.go`):
				default:
					t.Errorf("got %q", lines)
				}
			})
		})
	}
}

// TestAnOverrunOverHTTP1 calls a handler that overruns its deadline in the goroutine of the connection. If the
// connection can be hijacked, the answer must come at the deadline. Otherwise it must come when the handler returns.
func TestAnOverrunOverHTTP1(t *testing.T) {
	overrun := validating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
		<-ctx.Done()
		<-time.After(time.Minute)
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		e := serveInMemory(t, webhook.Options{}, overrun)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		start := time.Now()
		a := e.ask(t, overrun, call{})
		if took := time.Since(start); took != 4500*time.Millisecond {
			t.Errorf("the connection was answered after %s", took)
		}
		if status := a.failed(t); status.Code != http.StatusGatewayTimeout || status.Details.UID != "u-1" {
			t.Errorf("got %s", a.body)
		}
		<-time.After(2 * time.Minute) // the handler returns after its connection was closed
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		status := ask(t, overrun, call{}).failed(t)
		if took := time.Since(start); took != 4500*time.Millisecond+time.Minute || status.Code != http.StatusGatewayTimeout {
			t.Errorf("%d after %s", status.Code, took)
		}
	})
}

// TestAHandlerThatEndsItsGoroutine calls runtime.Goexit in a handler. The call must still be
// answered.
func TestAHandlerThatEndsItsGoroutine(t *testing.T) {
	hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error { runtime.Goexit(); return nil })
	for _, h2 := range []bool{false, true} {
		e := serve(t, webhook.Options{}, hook)
		e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		want(t, e.ask(t, hook, call{}).failed(t).Message, "the handler ended its goroutine")
	}
	var answered answer
	var caller sync.WaitGroup
	caller.Go(func() {
		w := httptest.NewRecorder()
		defer func() { answered = answer{code: w.Code, header: w.Header(), body: w.Body.Bytes()} }()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?timeout=5s", bytes.NewReader(call{}.body()))
		r.Header.Set("Content-Type", "application/json")
		hook.ServeHTTP(w, r)
	})
	caller.Wait()
	want(t, answered.failed(t).Message, "the handler ended its goroutine")
}

type failing struct{ text string }

func (f *failing) Error() string { return f.text }

// panicking is a type whose methods panic.
type panicking struct {
	Metadata struct {
		Name metav1.Time `json:"-"`
	} `json:"metadata"`
	Mood panickingText `json:"panickingText,omitempty"`
}

type panickingText struct{ text string }

func (m *panickingText) UnmarshalJSON(raw []byte) error {
	if m.text = string(raw); m.text == `"bad"` {
		panic("what a day")
	}
	return nil
}

func (m panickingText) MarshalJSON() ([]byte, error) {
	if m.text == `"changed"` {
		panic("leave me alone")
	}
	return []byte(m.text), nil
}

func TestTypesThatPanicFailTheCall(t *testing.T) {
	hook := webhook.Mutating(anything, func(_ context.Context, req *webhook.Request[panicking]) error {
		if req.Name == "old" {
			_, err := req.OldObject()
			return err
		}
		req.Object.Mood.text = `"changed"`
		return nil
	})
	for _, in := range []struct {
		reason, want string
		call         call
	}{
		{"while decoding", "decoding the object panicked: what a day", call{object: `{"panickingText":"bad"}`}},
		{"while comparing", "comparing the object panicked: leave me alone", call{object: `{"panickingText":"good"}`}},
		{"in the handler", "the handler panicked: what a day", call{operation: admissionv1.Update, name: "old", object: `{}`, oldObject: `{"panickingText":"bad"}`}},
		{"of duplicates, the last one counts", "comparing the object panicked: leave me alone", call{object: `{"panickingText":"bad"},"object":{"panickingText":"good"}`}},
	} {
		row(t, in.reason, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			status := ask(t, hook.WithLogger(logger), in.call).failed(t)
			want(t, status.Message, in.want)
			if status.Code != http.StatusInternalServerError || len(lines) != 1 || !strings.Contains(lines[0], "panickingText") {
				t.Errorf("%d, and the log has no stack: %q", status.Code, lines)
			}
		})
	}
}

// TestWhichOfSeveralErrorsIsReported sends calls with several errors, and checks which of them is reported. For
// example, a wrong kind takes precedence over an object that does not decode.
func TestWhichOfSeveralErrorsIsReported(t *testing.T) {
	const wrongShape = `{"spec":1}`
	for _, in := range []struct{ reason, body, want string }{
		{"the shape alone", string(call{object: wrongShape}.body()), "cannot decode object as v1.Pod: spec: want object, got number"},
		{"a wrong kind, before the shape", string(call{object: wrongShape, kind: "/v1/Node"}.body()), "the hook handles kind Pod (v1), not kind Node (v1)"},
		{"text that is not JSON, before the shape", strings.Replace(string(call{object: wrongShape}.body()), `"options":null`, `"options":nul`, 1),
			"cannot read the AdmissionReview: request.options: not JSON: unexpected '}' in literal null at byte 290"},
		{"text that is not JSON, in the object", string(call{object: `{"spec":1,"x":[}`}.body()),
			"cannot read the AdmissionReview: request.object: not JSON: unexpected '}' looking for the beginning of a value at byte 264"},
		{"a review of an unknown version, before the shape", strings.Replace(string(call{object: wrongShape}.body()), "k8s.io/v1", "k8s.io/v9", 1),
			`cannot read the AdmissionReview: apiVersion: unknown AdmissionReview version: "admission.k8s.io/v9" is neither admission.k8s.io/v1 nor admission.k8s.io/v1beta1`},
		{"another object of that name after it", string(call{object: wrongShape + `,"object":{}`}.body()), ""},
		{"another object of that name before it", string(call{object: `{},"object":` + wrongShape}.body()), "cannot decode object as v1.Pod: spec: want object, got number"},
		{"null after it, which keeps it", string(call{object: wrongShape + `,"object":null`}.body()), "cannot decode object as v1.Pod: spec: want object, got number"},
		{"a request of that name after it", strings.Replace(string(call{object: wrongShape}.body()), `{"kind"`, `{"request":{"object":{"spec":2}},"request":null,"kind"`, 1),
			"cannot decode object as v1.Pod: spec: want object, got number"},
	} {
		row(t, in.reason, func(t *testing.T) {
			a := post(t, validating(admit), "", "application/json", strings.NewReader(in.body))
			if in.want == "" {
				a.allowed(t, call{}, false)
			} else {
				want(t, a.failed(t).Message, in.want)
			}
		})
	}
}

func TestDuplicateObjectsDoNotMerge(t *testing.T) {
	c := call{object: `{"metadata":{"name":"a","labels":{"a":"1"}},"spec":{"nodeName":"n"}},"object":{"metadata":{"name":"b"}}`}
	hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		text, err := json.Marshal(req.Object.ObjectMeta)
		return errors.Join(err, webhook.Deny(string(text)+req.Object.Spec.NodeName))
	})
	want(t, ask(t, hook, c).denied(t, call{}, false).Message, `{"name":"b"}`)
}

// TestHandlerIsNotCalledAfterItsDeadline sends a body that takes longer than the whole timeout. The handler must not be
// called.
func TestHandlerIsNotCalledAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(func(context.Context, *webhook.Request[corev1.Pod]) error { t.Error("called"); return nil })
		body := &late{bytes.NewReader(call{}.body()), 2 * time.Second}
		want(t, post(t, hook, "?timeout=1s", "application/json", body).failed(t).Message, "context deadline exceeded: the handler did not decide within 900ms")
	})
}

func TestRequestAfterTheHandlerReturned(t *testing.T) {
	var kept, asked *webhook.Request[corev1.Pod]
	c := call{operation: admissionv1.Update, object: newFields(1), oldObject: thePod, options: `{"fieldManager":"x"}`}
	hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		kept = req
		return nil
	})
	ask(t, hook, c).allowed(t, c, false)
	ask(t, validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		asked = req
		_, err := req.OldObject()
		return err
	}), c).allowed(t, c, false)
	const over = "the handler has returned: decode the old object and the options before it returns"
	if old, err := kept.OldObject(); old != nil || fmt.Sprint(err) != over {
		t.Errorf("the old object: %v, %v", old, err)
	}
	if old, err := asked.OldObject(); err != nil || old.Name != "web" {
		t.Errorf("the old object that was asked for in time: %v, %v", old, err)
	}
	if err := kept.DecodeOptions(&metav1.UpdateOptions{}); fmt.Sprint(err) != over {
		t.Errorf("the options: %v", err)
	}
	whole := kept.AdmissionRequest()
	if kept.RawObject() != nil || kept.RawOldObject() != nil || kept.UnknownFields() != nil || whole.Object.Raw != nil {
		t.Errorf("documents: %s, %s, %s, %s", kept.RawObject(), kept.RawOldObject(), kept.UnknownFields(), whole.Object.Raw)
	}
	if kept.Object.Name != "web" || whole.UID != "u-1" || kept.UserInfo.Username != "ada" {
		t.Errorf("what was decoded is gone: %+v", kept)
	}
}

// A brokenWriter fails each write, and keeps the slice that it got.
type brokenWriter struct {
	*httptest.ResponseRecorder
	written []byte
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	w.written = p // like HTTP/2, which may still read it
	return 0, errors.New("reset")
}

func TestMemoryOfAnUnsentAnswerIsNotReused(t *testing.T) {
	hook := validating(admit)
	send := func(w http.ResponseWriter, uid string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(call{uid: uid}.body()))
		r.Header.Set("Content-Type", "application/json")
		hook.ServeHTTP(w, r)
	}
	var broken []*brokenWriter
	for i := range 20 {
		w := &brokenWriter{ResponseRecorder: httptest.NewRecorder()}
		broken = append(broken, w)
		send(w, fmt.Sprint("u-", 10+i))
		send(httptest.NewRecorder(), "other")
	}
	for i, w := range broken {
		if !bytes.Contains(w.written, []byte(fmt.Sprint("u-", 10+i))) {
			t.Errorf("answer %d became %s", i, w.written)
		}
	}
}

func TestLargeAnswersHaveAContentLength(t *testing.T) {
	for _, size := range []int{10, 1900, 2100, 10_000} {
		hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			req.Object.Annotations = map[string]string{"a": strings.Repeat("x", size)}
			return nil
		})
		for _, h2 := range []bool{false, true} {
			e := serve(t, webhook.Options{}, hook)
			e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
			a := e.ask(t, hook, call{})
			a.allowed(t, call{}, true)
			if got := a.header.Get("Content-Length"); got != fmt.Sprint(len(a.body)) {
				t.Errorf("h2 %t: %d bytes with length %q", h2, len(a.body), got)
			}
		}
	}
}

// TestASuccessfulCallDoesNotUseTheLogger checks that a call with a decision only asks the log sink whether V(1) is
// enabled. It must not add values to the logger.
func TestASuccessfulCallDoesNotUseTheLogger(t *testing.T) {
	sink := &countingSink{}
	hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Name == "deny" {
			return webhook.Deny("no")
		}
		return nil
	}).WithLogger(logr.New(sink))
	ask(t, hook, call{}).allowed(t, call{}, false)
	if sink.values != 0 || sink.enabled != 1 {
		t.Errorf("allowed: asked whether it is enabled %d times, given values %d times", sink.enabled, sink.values)
	}
	ask(t, hook, call{name: "deny"}).denied(t, call{}, false)
	if sink.values != 0 || sink.enabled != 2 {
		t.Errorf("denied: asked whether it is enabled %d times, given values %d times", sink.enabled, sink.values)
	}
}

type countingSink struct{ enabled, values int }

func (*countingSink) Init(logr.RuntimeInfo)            {}
func (s *countingSink) Enabled(int) bool               { s.enabled++; return false }
func (*countingSink) Info(int, string, ...any)         {}
func (*countingSink) Error(error, string, ...any)      {}
func (s *countingSink) WithName(string) logr.LogSink   { return s }
func (s *countingSink) WithValues(...any) logr.LogSink { s.values++; return s }

// TestARawHandlerOwnsItsDocuments appends to the object in the handler, and checks that this does not overwrite the old
// object. Later calls must not change the documents that a handler kept.
func TestARawHandlerOwnsItsDocuments(t *testing.T) {
	c := call{operation: admissionv1.Update, object: thePod, oldObject: thePod}
	var kept []*review.Request
	hook := webhook.ValidatingRaw(admissionregistrationv1.ValidatingWebhook{Name: "raw.example.com", Rules: everything}, func(_ context.Context, req *review.Request) (*review.Decision, error) {
		_ = append(req.Object, "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"...)
		if string(req.OldObject) != thePod {
			return nil, errors.New("the old object was overwritten")
		}
		kept = append(kept, req)
		return review.Allow(), nil
	})
	for range 3 {
		ask(t, hook, c).allowed(t, c, false)
	}
	if slices.ContainsFunc(kept, func(r *review.Request) bool { return string(r.Object) != thePod }) {
		t.Error("a document changed later")
	}
}
