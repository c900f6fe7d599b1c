// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	changed = "the handler changed %s, which a webhook must not change"
	removed = "the handler removed %s, which a webhook must not remove"
)

func TestFixedFieldsMustNotChange(t *testing.T) {
	object := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","managedFields":[{"manager":"kubectl"}]},"spec":{"containers":[]}}`
	pod := func(change func(*corev1.Pod)) *webhook.Hook {
		return mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error { change(req.Object); return nil })
	}
	loose := func(change func(*unstructured.Unstructured)) *webhook.Hook {
		return webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "any.example.com", Rules: everything},
			func(_ context.Context, req *webhook.Request[unstructured.Unstructured]) error {
				change(req.Object)
				return nil
			})
	}
	for _, in := range []struct {
		reason  string
		hook    *webhook.Hook
		place   string // the field that the failure names; empty: the call succeeds
		failure string // the reason in the failure; "changed" when empty
		patched string // the part of the object that is patched, if the call succeeds
	}{
		{reason: "kind", hook: pod(func(p *corev1.Pod) { p.Kind = "Node" }), place: "kind"},
		{reason: "apiVersion", hook: pod(func(p *corev1.Pod) { p.APIVersion = "v2" }), place: "apiVersion"},
		{reason: "namespace", hook: pod(func(p *corev1.Pod) { p.Namespace = "other" }), place: "metadata.namespace"},
		{reason: "the namespace removed", hook: pod(func(p *corev1.Pod) { p.Namespace = "" }), failure: removed, place: "metadata.namespace"},
		{reason: "managedFields", hook: pod(func(p *corev1.Pod) { p.ManagedFields[0].Manager = "me" }), place: "metadata.managedFields"},
		{reason: "managedFields removed", hook: pod(func(p *corev1.Pod) { p.ManagedFields = nil }), failure: removed, place: "metadata.managedFields"},
		{reason: "all of the metadata of an Unstructured", hook: loose(func(u *unstructured.Unstructured) { delete(u.Object, "metadata") }), failure: removed, place: "metadata"},
		{reason: "all of it", hook: loose(func(u *unstructured.Unstructured) { u.Object = map[string]any{} }), failure: removed, place: "metadata"},
		{reason: "the kind of an Unstructured", hook: loose(func(u *unstructured.Unstructured) { u.SetKind("Node") }), place: "kind"},
		{reason: "a fresh Go value has no kind, and changes none",
			hook: pod(func(p *corev1.Pod) {
				*p = corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: corev1.PodSpec{Containers: []corev1.Container{}, NodeName: "n"}}
			}),
			patched: strings.Replace(object, `"containers":[]`, `"containers":[],"nodeName":"n"`, 1)},
		{reason: "the name is the author's to change", hook: pod(func(p *corev1.Pod) { p.Name = "other" }), patched: strings.Replace(object, `"web"`, `"other"`, 1)},
	} {
		row(t, in.reason, func(t *testing.T) {
			c := call{object: object}
			a := ask(t, in.hook, c)
			if in.place == "" {
				_, patched := a.allowed(t, c, true)
				wantJSON(t, patched, in.patched)
				return
			}
			want(t, a.failed(t).Message, fmt.Sprintf(cmp.Or(in.failure, changed), in.place))
		})
	}
}

func TestAMutatingHandlerMustLeaveAnObject(t *testing.T) {
	hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error { req.Object = nil; return nil })
	want(t, ask(t, hook, call{}).failed(t).Message, "the handler set Object to nil; to refuse the object, return webhook.Deny")
	replace := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object = req.Object.DeepCopy()
		req.Object.Spec.NodeName = "n"
		return nil
	})
	got, _ := ask(t, replace, call{}).allowed(t, call{}, true)
	want(t, got, `[{"op":"add","path":"/spec/nodeName","value":"n"}]`)
}

// TestAHandlerThatOutlivesItsDeadline changes the request in a handler while the hook answers and afterwards. The race
// detector would report memory that the handler shares with the answer.
func TestAHandlerThatOutlivesItsDeadline(t *testing.T) {
	// overrun calls change again and again, from the deadline until 100 times after the test has read the answer. So
	// the handler cannot decide before the hook has answered.
	overrun := func(ctx context.Context, answered <-chan struct{}, change func()) {
		<-ctx.Done()
		for left := 100; left > 0; runtime.Gosched() {
			change()
			select {
			case <-answered:
				left--
			default:
			}
		}
	}
	hooks := map[string]func(answered <-chan struct{}, begin func() (end func())) *webhook.Hook{
		"typed": func(answered <-chan struct{}, begin func() (end func())) *webhook.Hook {
			return mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
				defer begin()()
				overrun(ctx, answered, func() {
					req.UID, req.Kind.Kind, req.UserInfo.Username = "other", "Other", "eve"
					req.Warn("too late")
					_ = label(ctx, req)
				})
				return webhook.Deny("too late")
			})
		},
		"raw": func(answered <-chan struct{}, begin func() (end func())) *webhook.Hook {
			return webhook.MutatingRaw(admissionregistrationv1.MutatingWebhook{Name: "raw.example.com", Rules: everything},
				func(ctx context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
					defer begin()()
					overrun(ctx, answered, func() {
						req.UID, req.Version, req.Kind.Kind = "other", "v9", "Other"
					})
					return review.Allow(), nil, nil
				})
		},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			called := 0
			for range 8 {
				if expectOverrunAnswered(t, hook) {
					called++
				}
			}
			if called == 0 {
				t.Error("the handler was not called once")
			}
		})
	}
}

// expectOverrunAnswered calls a hook whose handler overruns its deadline, and waits until the handler ends. The answer
// must be a timeout. expectOverrunAnswered reports whether the handler was called: on a busy machine, the deadline may
// pass before the call is read.
func expectOverrunAnswered(t *testing.T, hook func(answered <-chan struct{}, begin func() (end func())) *webhook.Hook) bool {
	t.Helper()
	answered := make(chan struct{})
	var handler sync.WaitGroup
	var called atomic.Bool
	begin := func() func() {
		handler.Add(1)
		called.Store(true)
		return handler.Done
	}
	a := postHTTP2(t, hook(answered, begin), "?timeout=100ms", call{}.body())
	status := a.failed(t)
	if status.Code != http.StatusGatewayTimeout || status.Details.UID != "u-1" {
		t.Errorf("got %s", a.body)
	}
	want(t, status.Message, "context deadline exceeded: the handler did not decide within 50ms")
	close(answered)
	if !called.Load() {
		return false
	}
	handler.Wait()
	return true
}

func TestARawHandlerCannotChangeTheAnsweredUID(t *testing.T) {
	hook := webhook.ValidatingRaw(admissionregistrationv1.ValidatingWebhook{Name: "raw.example.com", Rules: everything},
		func(_ context.Context, req *review.Request) (*review.Decision, error) {
			req.UID, req.Version, req.Object = "other", review.V1beta1, nil
			return review.Allow(), nil
		})
	ask(t, hook, call{}).allowed(t, call{}, false)
}

func TestRawHandlers(t *testing.T) {
	reg := admissionregistrationv1.MutatingWebhook{Name: "raw.example.com", Rules: everything}
	add := patch.Patch{{Op: patch.Add, Path: "/metadata/labels", Value: []byte(`{"a":"b"}`)}}
	answering := func(d *review.Decision, p patch.Patch, err error) *webhook.Hook {
		return webhook.MutatingRaw(reg, func(_ context.Context, req *review.Request) (*review.Decision, patch.Patch, error) {
			if req.Operation != admissionv1.Delete && string(req.Object) != thePod {
				return nil, nil, fmt.Errorf("got the object %s", req.Object)
			}
			return d, p, err
		})
	}
	got, _ := ask(t, answering(review.Allow(), add, nil), call{}).allowed(t, call{}, true)
	want(t, got, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
	want(t, ask(t, answering(nil, nil, webhook.Deny("no")), call{}).denied(t, call{}, true).Message, "no")
	want(t, ask(t, answering(review.Allow(), add, webhook.Deny("no")), call{}).denied(t, call{}, true).Message, "no")
	want(t, ask(t, answering(nil, nil, errors.New("broken")), call{}).failed(t).Message, "broken")
	want(t, ask(t, answering(nil, add, nil), call{}).failed(t).Message, "the handler returned neither a decision nor an error")
	denial := review.Deny(metav1.Status{Code: 418, Message: "tea"})
	if status := ask(t, answering(denial, add, nil), call{}).denied(t, call{}, true); status.Code != 418 {
		t.Errorf("got %+v", status)
	}
	del := call{operation: admissionv1.Delete, oldObject: thePod}
	want(t, ask(t, answering(review.Allow(), add, nil), del).failed(t).Message, "the handler patches the object of a DELETE, which has none")
}

func TestTheContextOfAHandler(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var deadline time.Time
		hook := validating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
			deadline, _ = ctx.Deadline()
			if ctx.Value(key{}) != "x" || ctx.Err() != nil {
				return errors.New("not the context of the HTTP request")
			}
			return nil
		})
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), key{}, "x"), http.MethodPost, "/?timeout=10s", bytes.NewReader(call{}.body()))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		if left := time.Until(deadline); w.Code != http.StatusOK || left != 9*time.Second {
			t.Errorf("%d, and %s left of 10s", w.Code, left)
		}
	})
}

var duration = regexp.MustCompile(`"duration"="[0-9.]+[µm]?s"`)

// TestLogs checks the keys of each line, and that no line contains the object.
func TestLogs(t *testing.T) {
	const secret = "hunter2"
	object := `{"metadata":{"name":"web","annotations":{"password":"` + secret + `"}},"spec":{"containers":[{"name":"app","env":[{"name":"TOKEN","value":"` + secret + `"}]}]}}`
	wrong := strings.Replace(object, `"containers":[`, `"priority":"`+secret+`","containers":[`, 1)
	c := call{name: "web", namespace: "shop", object: object, oldObject: object,
		more: `"userInfo":{"username":"ada","extra":{"token":["` + secret + `"]}},"options":{"fieldManager":"` + secret + `"}`}
	const keys = `"webhook"="pods.example.com" "requestUID"="u-1" "gvk"="Pod (v1)" "operation"="CREATE" "namespace"="shop" "name"="web"`
	for _, in := range []struct {
		reason  string
		handler func(context.Context, *webhook.Request[corev1.Pod]) error
		object  string
		want    []string
	}{
		{reason: "an admission", handler: label, want: []string{`"level"=1 "msg"="mutated" ` + keys + ` "duration"="…"`}},
		{reason: "a denial has its code and reason, not its words", handler: func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			req.Warn(secret)
			return webhook.Deny(secret)
		}, want: []string{`"level"=1 "msg"="denied" ` + keys + ` "code"=403 "reason"="Forbidden" "duration"="…"`}},
		{reason: "a failure has its error", handler: func(context.Context, *webhook.Request[corev1.Pod]) error { return errors.New("down") },
			want: []string{`"msg"="cannot decide" "error"="down" ` + keys + ` "code"=500`}},
		{reason: "an object that does not decode", handler: admit, object: wrong,
			want: []string{`"msg"="cannot decide" "error"="cannot decode object as v1.Pod: spec.priority: want int32, got string" ` + keys + ` "code"=400`}},
		{reason: "the handler's own line has the keys too", handler: func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
			logr.FromContextOrDiscard(ctx).Info("mine")
			return nil
		}, want: []string{`"level"=0 "msg"="mine" ` + keys, `"level"=1 "msg"="allowed" ` + keys + ` "duration"="…"`}},
	} {
		row(t, in.reason, func(t *testing.T) {
			c := c
			if in.object != "" {
				c.object = in.object
			}
			var lines []string
			logger := funcr.New(func(_, args string) {
				lines = append(lines, duration.ReplaceAllString(args, `"duration"="…"`))
			}, funcr.Options{Verbosity: 10})
			ask(t, mutating(in.handler).WithLogger(logger), c)
			if !slices.Equal(lines, in.want) {
				t.Errorf("\n got %q\nwant %q", lines, in.want)
			}
			if strings.Contains(strings.Join(lines, "\n"), secret) {
				t.Errorf("a secret is in the log: %s", lines)
			}
		})
	}
	t.Run("a panic has its stack", func(t *testing.T) {
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		hook := mutating(func(context.Context, *webhook.Request[corev1.Pod]) error { panic("oh") }).WithLogger(logger)
		if ask(t, hook, c); len(lines) != 1 || !strings.Contains(lines[0], `"msg"="cannot decide" "error"="the handler panicked: oh" `+keys+` "stack"="goroutine `) ||
			!strings.Contains(lines[0], "handler_test.go") || strings.Contains(strings.Join(lines, ""), secret) {
			t.Errorf("got %q", lines)
		}
	})
	t.Run("without its own, a hook uses the logger of the HTTP request", func(t *testing.T) {
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		r := httptest.NewRequestWithContext(logr.NewContext(t.Context(), logger), http.MethodGet, "/", nil)
		mutating(admit).ServeHTTP(httptest.NewRecorder(), r)
		if wanted := `"msg"="cannot decide" "error"="method GET: an AdmissionReview is sent by POST" "webhook"="pods.example.com" "code"=405`; !slices.Equal(lines, []string{wanted}) {
			t.Errorf("got %q", lines)
		}
	})
}
