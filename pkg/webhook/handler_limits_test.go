// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var anything = admissionregistrationv1.MutatingWebhook{Name: "pods.example.com", Rules: everything}

func TestRawPatchesAreChecked(t *testing.T) {
	for _, in := range []struct {
		reason string
		patch  patch.Patch
		want   string // the message of the failure; empty if no patch is sent
	}{
		{"an unknown operation", patch.Patch{{Op: "put", Path: "/a"}}, `operation 0: unknown op "put"`},
		{"an invalid pointer", patch.Patch{{Op: patch.Remove, Path: "a"}}, `operation 0: remove needs a JSON pointer as its path, not "a"`},
		{"an add without a value", patch.Patch{{Op: patch.Add, Path: "/a"}}, `operation 0: add needs a value at "/a": to mean null, write null`},
		{"a value that is not JSON", patch.Patch{{Op: patch.Add, Path: "/a", Value: json.RawMessage("{")}}, `operation 0: the value of add at "/a" is not JSON`},
		{"tests change nothing", patch.Patch{{Op: patch.Test, Path: "/a", Value: json.RawMessage("1")}}, ""},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := webhook.MutatingRaw(anything, func(context.Context, *review.Request) (*review.Decision, patch.Patch, error) {
				return review.Allow(), in.patch, nil
			})
			if in.want == "" {
				got, _ := ask(t, hook, call{}).allowed(t, call{}, true)
				want(t, got, "")
				return
			}
			want(t, ask(t, hook, call{}).failed(t).Message, in.want)
		})
	}
}

func TestAnInternalFieldErrorIsAFailure(t *testing.T) {
	lookup := field.InternalError(field.NewPath("spec"), errors.New("database down"))
	for _, err := range []error{lookup, field.ErrorList{field.Required(field.NewPath("a"), ""), lookup}.ToAggregate()} {
		both(t, func(context.Context, *webhook.Request[corev1.Pod]) error { return err }, func(t *testing.T, hook *webhook.Hook, _ bool) {
			want(t, fmt.Sprint(ask(t, hook, call{}).failed(t).Code), "500")
		})
	}
}

func TestAHandlerNeedsAStructType(t *testing.T) {
	const pointer = "the handler takes a Request[*v1.Pod], but an object decodes only into a struct type"
	hook := webhook.Mutating(anything, func(context.Context, *webhook.Request[*corev1.Pod]) error { return nil })
	if err := hook.Check(); err == nil || err.Error() != pointer {
		t.Errorf("got %v", err)
	}
	if err := webhook.Mutating(anything, func(context.Context, *webhook.Request[string]) error { return nil }).Check(); err == nil {
		t.Error("a string passed")
	}
	type mine struct{ corev1.Pod } // has the methods of a Pod, not its kind
	ask(t, webhook.Mutating(anything, func(_ context.Context, req *webhook.Request[mine]) error {
		return webhook.Deny(req.Object.Name)
	}), call{object: thePod}).denied(t, call{object: thePod}, true)
}

func TestAHookNeedsAHandler(t *testing.T) {
	const missing = "webhook pods.example.com has no handler"
	for _, hook := range []*webhook.Hook{webhook.Mutating[corev1.Pod](anything, nil), webhook.MutatingRaw(anything, nil)} {
		if err := hook.Check(); err == nil || err.Error() != missing {
			t.Errorf("got %v", err)
		}
	}
}

func TestRulesThatMatchNothingAreInvalid(t *testing.T) {
	for _, in := range []struct{ reason, group, version, resource, want string }{
		{"a name for the core group", "core", "v1", "pods", `mutating[pods.example.com].rules[0].apiGroups[0]: Invalid value: "core": the core group is written ""`},
		{"a group with its version", "apps/v1", "v1", "pods", `mutating[pods.example.com].rules[0].apiGroups[0]: Invalid value: "apps/v1": want a group such as "apps", without a version`},
		{"no version", "", "V1", "pods", `mutating[pods.example.com].rules[0].apiVersions[0]: Invalid value: "V1": want a version such as "v1"`},
		{"a kind", "", "v1", "ConfigMap", `mutating[pods.example.com].rules[0].resources[0]: Invalid value: "ConfigMap": want a resource in lower case, such as "pods" or "pods/exec", not a kind`},
		{"a slash too many", "", "v1", "pods/", `mutating[pods.example.com].rules[0].resources[0]: Invalid value: "pods/": want a resource in lower case, such as "pods" or "pods/exec", not a kind`},
		{"wildcards are fine", "*", "*", "*/scale", ""},
	} {
		row(t, in.reason, func(t *testing.T) {
			err := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
				Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate(in.group, in.version, in.resource)),
			}, admit).Check()
			if got := fmt.Sprint(err); got != in.want && (in.want != "" || err != nil) {
				t.Errorf("got %s, want %s", got, in.want)
			}
		})
	}
}

func TestReplacedMetadataMustNotSetFixedFields(t *testing.T) {
	for _, object := range []string{`{}`, `{"metadata":null}`} {
		for _, set := range []map[string]any{{"namespace": "kube-system"}, {"managedFields": []any{map[string]any{}}}} {
			hook := webhook.Mutating(anything, func(_ context.Context, req *webhook.Request[unstructured.Unstructured]) error {
				req.Object.Object["metadata"] = set
				return nil
			})
			want(t, ask(t, hook, call{object: object}).failed(t).Message,
				"the handler set metadata.namespace or metadata.managedFields, which a webhook must not set")
		}
	}
}

// TestQuotedValuesAreShort sends values of 1 MiB that an error quotes. The answer and the log must contain only the
// beginning of the value.
func TestQuotedValuesAreShort(t *testing.T) {
	long := strings.Repeat("9", 1<<20)
	for reason, c := range map[string]call{
		"a number": {object: `{"spec":{"priority":` + long + `}}`},
		"a kind":   {kind: "/v1/" + long},
		"a field":  {object: `{"metadata":{"labels":{"` + long + `":5}}}`},
	} {
		row(t, reason, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			if a := ask(t, mutating(admit).WithLogger(logger), c); a.failed(t) == nil || len(a.body) > 8192 {
				t.Errorf("%d bytes of answer", len(a.body))
			}
			if log := strings.Join(lines, ""); len(log) == 0 || len(log) > 8192 {
				t.Errorf("%d bytes of log", len(log))
			}
		})
	}
	c := call{object: `{"metadata":{"creationTimestamp":"hunter2"}}`}
	if got := ask(t, mutating(admit), c).failed(t).Message; got != "cannot decode object as v1.Pod: metadata.creationTimestamp: not a valid v1.Time" {
		t.Errorf("got %s", got)
	}
}

// TestReadingTheBodyCountsAsTimeOfTheCall sends a body that takes 800 ms of the 900 ms that the call may take. The
// handler must get only the rest of the time.
func TestReadingTheBodyCountsAsTimeOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := mutating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?timeout=1s", &late{bytes.NewReader(call{}.body()), 800 * time.Millisecond})
		r.Header.Set("Content-Type", "application/json")
		w, start := httptest.NewRecorder(), time.Now()
		hook.ServeHTTP(w, r)
		if took := time.Since(start); w.Code != http.StatusGatewayTimeout || took != 900*time.Millisecond {
			t.Errorf("%d after %s: %s", w.Code, took, w.Body)
		}
	})
}

type late struct {
	io.Reader
	by time.Duration
}

func (l *late) Read(p []byte) (int, error) {
	<-time.After(l.by)
	l.by = 0
	return l.Reader.Read(p)
}

// TestServiceOfARegistrationIsCompleted leaves the name or the namespace out of the service in a registration.
// Configurations must take the missing part from its options.
func TestServiceOfARegistrationIsCompleted(t *testing.T) {
	for _, in := range []struct{ reason, namespace, name, want string }{
		{"nothing of its own", "", "", "shop/hooks"},
		{"its own name", "", "mine", "shop/mine"},
		{"its own namespace", "own", "", "own/hooks"},
		{"both", "own", "mine", "own/mine"},
	} {
		row(t, in.reason, func(t *testing.T) {
			reg := anything
			reg.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: in.namespace, Name: in.name}
			hook := webhook.Mutating(reg, admit)
			got, _, err := webhook.Configurations(webhook.ConfigurationOptions{
				Name: "x", Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks"},
			}, hook)
			if err != nil {
				t.Fatal(err)
			}
			s := got.Webhooks[0].ClientConfig.Service
			want(t, s.Namespace+"/"+s.Name, in.want)
		})
	}
}
