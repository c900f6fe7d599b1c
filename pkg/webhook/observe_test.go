// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A recorder is an observer that records all Observations and failed TLS handshakes.
type recorder struct {
	mu         sync.Mutex
	begun      int
	calls      []webhook.Observation
	bodies     []string // of the calls
	answers    []string
	handshakes map[string]int
}

type recorderKey struct{}

func (r *recorder) Begin(ctx context.Context, h *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return context.WithValue(ctx, recorderKey{}, h.Name()), func(c *webhook.Observation) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, *c)
		r.bodies = append(r.bodies, string(c.AppendBody(nil)))
		r.answers = append(r.answers, string(c.AppendAnswer(nil)))
	}
}

func (r *recorder) HandshakeFailed(class string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handshakes == nil {
		r.handshakes = map[string]int{}
	}
	r.handshakes[class]++
}

func (r *recorder) handshakesOf(class string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handshakes[class]
}

func (r *recorder) outcomes() (all []webhook.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		all = append(all, c.Outcome)
	}
	return all
}

// one returns the only observation. It fails the test if there is not exactly one.
func (r *recorder) one(tb testing.TB) webhook.Observation {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != 1 || len(r.calls) != 1 {
		tb.Fatalf("%d calls began and %d ended: %+v", r.begun, len(r.calls), r.calls)
	}
	return r.calls[0]
}

type podHandler = func(context.Context, *webhook.Request[corev1.Pod]) error

// TestOutcomes makes calls that end in different ways, over HTTP/1.1 and HTTP/2. It checks the Observation that the
// observer gets.
func TestOutcomes(t *testing.T) {
	hangs := func(context.Context, *webhook.Request[corev1.Pod]) error { <-time.After(time.Hour); return nil }
	for _, in := range []struct {
		reason  string
		handler podHandler
		call    call
		body    string // instead of the call's
		want    webhook.Outcome
		code    int32
		err     string
	}{
		{reason: "nothing to do", handler: admit, want: webhook.Allowed, code: 200},
		{reason: "a change", handler: label, want: webhook.Mutated, code: 200},
		{reason: "no", handler: func(context.Context, *webhook.Request[corev1.Pod]) error { return webhook.Deny("no") }, want: webhook.Denied, code: 403},
		{reason: "a change and a denial", handler: func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
			return errors.Join(label(ctx, req), webhook.Deny("no"))
		}, want: webhook.Denied, code: 403},
		{reason: "an error", handler: func(context.Context, *webhook.Request[corev1.Pod]) error { return errors.New("down") }, want: webhook.Failed, code: 500, err: "down"},
		{reason: "a panic", handler: func(context.Context, *webhook.Request[corev1.Pod]) error { panic("oh") }, want: webhook.Panicked, code: 500, err: "the handler panicked: oh"},
		{reason: "a handler that ends its goroutine", handler: func(context.Context, *webhook.Request[corev1.Pod]) error { runtime.Goexit(); return nil },
			want: webhook.Failed, code: 500, err: "the handler ended its goroutine"},
		{reason: "a handler that is left behind", handler: hangs, want: webhook.TimedOut, code: 504, err: "context deadline exceeded: the handler did not decide within 4.5s"},
		{reason: "a handler that notices its deadline", handler: func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error { <-ctx.Done(); return ctx.Err() },
			want: webhook.TimedOut, code: 504, err: "context deadline exceeded: the handler did not decide within 4.5s"},
		{reason: "a deadline of the handler's own", handler: func(context.Context, *webhook.Request[corev1.Pod]) error { return context.DeadlineExceeded },
			want: webhook.Failed, code: 500, err: "context deadline exceeded"},
		{reason: "another kind", handler: admit, call: call{kind: "/v1/Node"}, want: webhook.Failed, code: 400, err: "the hook handles kind Pod (v1), not kind Node (v1)"},
		{reason: "no review", handler: admit, body: "{}", want: webhook.Failed, code: 400, err: "unreadable"},
		{reason: "no JSON", handler: admit, body: "{", want: webhook.Failed, code: 400, err: "unreadable"},
		{reason: "too large", handler: admit, body: strings.Repeat(" ", 5000), want: webhook.Failed, code: 413, err: "the body is larger than the limit of 4096 bytes"},
	} {
		for _, h2 := range []bool{false, true} {
			row(t, in.reason+map[bool]string{true: ", h2"}[h2], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := &recorder{}
					hook := mutating(in.handler).WithMaxBodyBytes(4096)
					e := serveInMemory(t, webhook.Options{Observers: []webhook.Observer{r}}, hook)
					e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
					body := in.call.body()
					if in.body != "" {
						body = []byte(in.body)
					}
					a := e.post(t, hook.Path()+"?timeout=5s", body)
					got := r.one(t)
					if got.Outcome != in.want || got.Code != in.code || (got.Err == nil) != (in.err == "") {
						t.Errorf("got %+v", got)
					}
					if in.err != "" && in.err != "unreadable" && !strings.Contains(a.failed(t).Message, in.err) {
						t.Errorf("got %s", a.body)
					}
					if (a.code == http.StatusOK) != (in.err == "") {
						t.Errorf("answered %d", a.code)
					}
					if answer := r.answers[0]; answer != string(a.body) || got.AnswerBytes != len(answer) {
						t.Errorf("the observer saw the answer %q, and the client %q", answer, a.body)
					}
					if got.Code != http.StatusRequestEntityTooLarge && (r.bodies[0] != string(body) || got.BodyBytes != len(body)) {
						t.Errorf("the observer saw the body %q", r.bodies[0])
					}
					<-time.After(2 * time.Hour) // until the handlers that missed their deadline return
					if r.one(t).Outcome != in.want {
						t.Error("the outcome changed")
					}
					if late := got.AppendAnswer(got.AppendBody(nil)); late != nil {
						t.Errorf("a kept Observation has the memory of later calls: %q", late)
					}
				})
			})
		}
	}
}

func TestFieldsOfAnObservation(t *testing.T) {
	r := &recorder{}
	hook := mutating(label).WithObserver(r)
	c := call{name: "web", namespace: "shop", more: `"dryRun":true`}
	a := ask(t, hook, c)
	p, _ := a.allowed(t, c, true)
	got := r.one(t)
	if got.Duration <= 0 {
		t.Errorf("it took %s", got.Duration)
	}
	got.Duration = 0
	want := webhook.Observation{Hook: "pods.example.com", Mutating: true, UID: "u-1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: "CREATE", Namespace: "shop", Name: "web", DryRun: true,
		Outcome: webhook.Mutated, Code: 200, BodyBytes: len(c.body()), AnswerBytes: len(a.body), PatchBytes: len(p), PatchOperations: strings.Count(p, `"op"`)}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(webhook.Observation{})); diff != "" {
		t.Error(diff)
	}
}

func TestObserversOfRawAndMountedHooks(t *testing.T) {
	r := &recorder{}
	raw := webhook.MutatingRaw(admissionregistrationv1.MutatingWebhook{Name: "raw.example.com", Rules: everything},
		func(context.Context, *review.Request) (*review.Decision, patch.Patch, error) {
			return review.Allow(), patch.Patch{{Op: patch.Add, Path: "/metadata/labels", Value: []byte(`{"a":"b"}`)}}, nil
		}).WithObserver(r)
	on := crwebhook.NewServer(crwebhook.Options{})
	if err := webhook.Register(on, raw); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(on.WebhookMux())
	defer server.Close()
	e := &endpoint{url: server.URL, client: server.Client()}
	e.ask(t, raw, call{}).allowed(t, call{}, true)
	if got := r.one(t); got.Outcome != webhook.Mutated || got.PatchOperations != 1 {
		t.Errorf("got %+v", got)
	}
	bad := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "bad", TimeoutSeconds: new(int32(99))}, label)
	r = &recorder{}
	ask(t, bad.WithObserver(r), call{}).failed(t)
	if got := r.one(t); got.Outcome != webhook.Failed || got.Code != 500 {
		t.Errorf("got %+v", got)
	}
}

// scripted is an observer whose Begin calls the function.
type scripted func(context.Context) (context.Context, func(*webhook.Observation))

func (s scripted) Begin(ctx context.Context, _ *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	return s(ctx)
}

func TestObserversAreNested(t *testing.T) {
	var order []string
	named := func(name string) webhook.Observer {
		return scripted(func(ctx context.Context) (context.Context, func(*webhook.Observation)) {
			order = append(order, "begin "+name)
			return ctx, func(*webhook.Observation) { order = append(order, "end "+name) }
		})
	}
	hook := mutating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
		if ctx.Value(recorderKey{}) != "pods.example.com" {
			t.Error("the context is not that of the observer")
		}
		return nil
	}).WithObserver(named("first")).WithObserver(named("second"))
	e := serve(t, webhook.Options{Observers: []webhook.Observer{named("server"), &recorder{}}}, hook)
	e.ask(t, hook, call{}).allowed(t, call{}, true)
	if want := []string{"begin server", "begin first", "begin second", "end second", "end first", "end server"}; !slices.Equal(order, want) {
		t.Errorf("got %q", order)
	}
}

// TestObserverCancelsTheCall uses an observer that returns a canceled context. The context of the handler must end too.
func TestObserverCancelsTheCall(t *testing.T) {
	ended := errors.New("by the observer")
	hook := mutating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}).WithObserver(scripted(func(ctx context.Context) (context.Context, func(*webhook.Observation)) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(ended)
		return ctx, nil
	}))
	if status := ask(t, hook, call{}).failed(t); status.Code != http.StatusInternalServerError {
		t.Errorf("got %v", status)
	}
}

func TestObserversMayPanic(t *testing.T) {
	r, log := &recorder{}, &logbook{}
	hook := mutating(label).WithObserver(
		scripted(func(context.Context) (context.Context, func(*webhook.Observation)) { return nil, nil }),
		scripted(func(context.Context) (context.Context, func(*webhook.Observation)) { panic("begin") }),
		scripted(func(ctx context.Context) (context.Context, func(*webhook.Observation)) {
			return ctx, func(*webhook.Observation) { panic("end") }
		}), r)
	e := serve(t, webhook.Options{Logger: funcr.New(log.write, funcr.Options{})}, hook)
	e.ask(t, hook, call{}).allowed(t, call{}, true)
	lines := log.with("an observer of calls panicked")
	if r.one(t).Outcome != webhook.Mutated || len(lines) != 2 || !strings.Contains(lines[0], "an observer of calls panicked: begin") || !strings.Contains(lines[1], "an observer of calls panicked: end") {
		t.Errorf("got %q", lines)
	}
}
