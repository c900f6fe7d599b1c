// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// withheld records what observers see of one call.
type withheld struct {
	mu      sync.Mutex
	seen    []webhook.Observation
	answers []string
}

func (w *withheld) Begin(ctx context.Context, _ *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	return ctx, func(o *webhook.Observation) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, *o)
		w.answers = append(w.answers, string(o.AppendAnswer(nil)))
	}
}

func (w *withheld) only(t *testing.T) webhook.Observation {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) != 1 {
		t.Fatalf("%d calls were observed", len(w.seen))
	}
	return w.seen[0]
}

func labels(req *webhook.Request[corev1.Pod]) error {
	req.Object.Labels = map[string]string{"team": "secret-of-shop"}
	req.Warn("a warning of the handler")
	return req.Audit("own", "note")
}

// TestModes calls hooks in the modes Warn and Shadow. No request may be denied or fail, and in Shadow the API client sees
// nothing.
func TestModes(t *testing.T) {
	for _, in := range []struct {
		reason   string
		handler  func(*webhook.Request[corev1.Pod]) error
		withheld webhook.Outcome
		key      string // of the annotation
		value    string // a part of its value
		warning  string // a part of the last warning in Warn
	}{
		{"a denial", func(*webhook.Request[corev1.Pod]) error { return webhook.Deny("no owner") },
			webhook.Denied, webhook.AuditWouldDeny, "no owner", "pods.example.com will deny this request once it is enforced: no owner"},
		{"an error", func(*webhook.Request[corev1.Pod]) error { return errors.New("database down") },
			webhook.Failed, webhook.AuditWouldFail, "database down", "which will fail once it is enforced: database down"},
		{"a panic", func(*webhook.Request[corev1.Pod]) error { panic("oops") },
			webhook.Panicked, webhook.AuditWouldFail, "panic", "which will fail once"},
		{"the end of the goroutine", func(*webhook.Request[corev1.Pod]) error { runtime.Goexit(); return nil },
			webhook.Failed, webhook.AuditWouldFail, "ended its goroutine", "which will fail once"},
		{"a change", labels, webhook.Mutated, webhook.AuditWouldChange, "add /metadata/labels", "has changed this object: add /metadata/labels"},
		{"nothing", func(*webhook.Request[corev1.Pod]) error { return nil }, "", "", "", ""},
	} {
		for _, mode := range []webhook.Mode{webhook.Warn, webhook.Shadow} {
			row(t, in.reason+" in "+string(mode), func(t *testing.T) {
				w := &withheld{}
				hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error { return in.handler(req) }).WithMode(mode).WithObserver(w)
				got := postHTTP2(t, hook, "?timeout=5s", call{}.body()).accepted(t, call{}, true)
				if !got.Allowed {
					t.Fatalf("denied: %v", got.Result)
				}
				sends := mode == webhook.Warn && in.withheld == webhook.Mutated
				if (len(got.Patch) > 0) != sends {
					t.Errorf("the patch is %s", got.Patch)
				}
				warned := len(got.Warnings) > 0 && strings.Contains(strings.Join(got.Warnings, " "), in.warning)
				if mode == webhook.Shadow && len(got.Warnings) > 0 || mode == webhook.Warn && in.warning != "" && !warned {
					t.Errorf("the warnings are %q", got.Warnings)
				}
				key := in.key
				if sends {
					key = ""
				}
				if !strings.Contains(got.AuditAnnotations[key], in.value) && key != "" || strings.Contains(strings.Join(append(got.Warnings, got.AuditAnnotations[key]), ""), "secret-of") {
					t.Errorf("the annotations are %v, and the warnings %q", got.AuditAnnotations, got.Warnings)
				}
				if (got.AuditAnnotations[webhook.AuditMode] == string(mode)) != (key != "") {
					t.Errorf("the annotations are %v", got.AuditAnnotations)
				}
				if in.withheld == webhook.Mutated && got.AuditAnnotations["own"] != "note" {
					t.Errorf("the handler's annotation is lost: %v", got.AuditAnnotations)
				}
				o, wantWithheld := w.only(t), in.withheld
				if sends {
					wantWithheld = ""
				}
				if o.Mode != mode || o.Withheld != wantWithheld || o.Outcome != webhook.Allowed && !sends {
					t.Errorf("observed the mode %q, withheld %q, outcome %q", o.Mode, o.Withheld, o.Outcome)
				}
			})
		}
	}
}

// TestEnforce requires that the mode Enforce, or none, changes nothing.
func TestEnforce(t *testing.T) {
	for _, mode := range []webhook.Mode{webhook.Enforce, ""} {
		hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error { return webhook.Deny("no") }).WithMode(mode)
		want(t, ask(t, hook, call{}).denied(t, call{}, false).Message, "no")
		if !hook.HasModes() {
			t.Errorf("a hook with the mode %q has no modes", mode)
		}
	}
	if validating(func(context.Context, *webhook.Request[corev1.Pod]) error { return nil }).HasModes() {
		t.Error("a hook without a mode has modes")
	}
}

// TestModeOfRequest chooses the mode by the request. A mode that cannot be chosen is a failure.
func TestModeOfRequest(t *testing.T) {
	deny := func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.DryRun {
			return webhook.Deny("in a dry run")
		}
		return webhook.Deny("no")
	}
	owned := `{"kind":"Pod","apiVersion":"v1","metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"1","controller":true}]}}`
	var kept *webhook.ModeRequest
	hook := validating(deny).WithModes(func(_ context.Context, req *webhook.ModeRequest) (webhook.Mode, error) {
		kept = req
		switch owner := req.Controller(); {
		case req.Namespace == "broken":
			return "", errors.New("no labels")
		case req.Namespace == "panic":
			panic("oops")
		case req.Namespace == "odd":
			return "Audit", nil
		case owner != nil && owner.Name == "web":
			return webhook.Shadow, nil
		case req.Namespace == "warned":
			return webhook.Warn, nil
		}
		return webhook.Enforce, nil
	})
	for namespace, message := range map[string]string{
		"broken": "the mode of the webhook cannot be chosen: no labels", "panic": "choosing the mode", "odd": `the mode of the webhook is "Audit": use Enforce, Warn or Shadow`,
	} {
		if got := ask(t, hook, call{namespace: namespace}).failed(t).Message; !strings.Contains(got, message) {
			t.Errorf("%s: got %q", namespace, got)
		}
	}
	want(t, ask(t, hook, call{namespace: "shop"}).denied(t, call{}, false).Message, "no")
	warned := ask(t, hook, call{namespace: "warned"}).accepted(t, call{}, false)
	if !warned.Allowed || !strings.HasSuffix(warned.Warnings[0], ": no") {
		t.Errorf("got %+v", warned)
	}
	for _, c := range []call{{object: owned}, {operation: "DELETE", oldObject: owned}} {
		got := ask(t, hook, c).accepted(t, c, false)
		if !got.Allowed || got.AuditAnnotations[webhook.AuditWouldDeny] != "in a dry run" {
			t.Errorf("got %+v", got)
		}
	}
	if kept.Controller() != nil {
		t.Error("the request can be read after the mode was chosen")
	}
}

// TestLateInShadow requires that a handler that misses its deadline does not delay the answer in Shadow, over HTTP/1.1
// and HTTP/2.
func TestLateInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error { <-release; return nil }).WithMode(webhook.Shadow)
		start := time.Now()
		got := postHTTP2(t, hook, "?timeout=2s", call{}.body()).accepted(t, call{}, false)
		if !got.Allowed || got.AuditAnnotations[webhook.AuditWouldFail] == "" || time.Since(start) >= 2*time.Second {
			t.Errorf("after %v: got %+v", time.Since(start), got)
		}
		close(release)
		synctest.Wait()
	})
	release := make(chan struct{})
	w := &withheld{}
	e := serve(t, webhook.Options{Observers: []webhook.Observer{w}},
		validating(func(context.Context, *webhook.Request[corev1.Pod]) error { <-release; return nil }).WithMode(webhook.Shadow))
	defer close(release)
	e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	resp, err := e.client.Post(e.url+"/validate/pods.example.com?timeout=1s", "application/json", bytes.NewReader(call{}.body()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 1 {
		t.Fatalf("the call used %s", resp.Proto)
	}
	got := answer{code: resp.StatusCode, header: resp.Header, body: body.Bytes()}.accepted(t, call{}, false)
	if o := w.only(t); !got.Allowed || o.Withheld != webhook.TimedOut || o.Outcome != webhook.Allowed || w.answers[0] != body.String() {
		t.Errorf("got %+v, observed %+v", got, o)
	}
}

// TestLongAnnotations requires that audit annotations and lists of operations are bounded.
func TestLongAnnotations(t *testing.T) {
	long := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for i := range req.Object.Spec.Containers {
			req.Object.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
		return nil
	}).WithMode(webhook.Shadow)
	denied := mutating(func(context.Context, *webhook.Request[corev1.Pod]) error {
		return webhook.Deny(strings.Repeat("é", 5000))
	}).WithMode(webhook.Shadow)
	c := call{object: `{"kind":"Pod","apiVersion":"v1","spec":{"containers":[` + strings.Repeat(`{"image":"a"},`, 49) + `{"image":"a"}]}}`}
	for key, hook := range map[string]*webhook.Hook{webhook.AuditWouldChange: long, webhook.AuditWouldDeny: denied} {
		got := ask(t, hook, c).accepted(t, c, true).AuditAnnotations[key]
		if len(got) > 1<<10 || !strings.HasSuffix(got, "…") && !strings.HasSuffix(got, ", and 30 more") {
			t.Errorf("%s has %d bytes: %s", key, len(got), got)
		}
	}
}
