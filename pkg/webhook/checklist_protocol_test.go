// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// docs/architecture.md lists 32 rules for a conforming webhook server. Each has one test over TLS, such as TestW9_01_…
// for rule 1. This file tests the format of answers. checklist_conduct_test.go tests the behaviour of the server.

var versions = []review.Version{review.V1, review.V1beta1}

// label is a mutating handler that adds the same label in every call.
func label(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	if req.Object == nil {
		return nil
	}
	if req.Object.Labels == nil {
		req.Object.Labels = map[string]string{}
	}
	req.Object.Labels["shop.example.com/seen"] = "yes"
	return nil
}

// refusals are handlers that deny. failures are handlers that fail to decide.
var refusals = map[string]func(context.Context, *webhook.Request[corev1.Pod]) error{
	"deny": func(context.Context, *webhook.Request[corev1.Pod]) error { return webhook.Deny("no") },
	"field error": func(context.Context, *webhook.Request[corev1.Pod]) error {
		return field.Required(field.NewPath("spec"), "x")
	},
	"conflict": func(context.Context, *webhook.Request[corev1.Pod]) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("old"))
	},
	"status": func(context.Context, *webhook.Request[corev1.Pod]) error {
		return webhook.DenyStatus(metav1.Status{Code: 503})
	},
	"changed, then refused": func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object.Namespace = "other" // a failure if the Pod were admitted
		return errors.Join(label(ctx, req), webhook.Deny("no"))
	},
}

var failures = map[string]func(context.Context, *webhook.Request[corev1.Pod]) error{
	"plain error": func(context.Context, *webhook.Request[corev1.Pod]) error { return errors.New("the database is down") },
	"panic":       func(context.Context, *webhook.Request[corev1.Pod]) error { panic("oh") },
	"server error": func(context.Context, *webhook.Request[corev1.Pod]) error {
		return apierrors.NewInternalError(errors.New("etcd"))
	},
	"late": func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error { <-ctx.Done(); return ctx.Err() },
}

// forEach calls a mutating and a validating hook with each handler, in both versions of the review, and passes each
// answer to check.
func forEach(t *testing.T, handlers map[string]func(context.Context, *webhook.Request[corev1.Pod]) error,
	check func(t *testing.T, a answer, c call, isMutating bool)) {
	t.Helper()
	for name, handler := range handlers {
		timeout := "30s"
		if name == "late" {
			timeout = "200ms"
		}
		both(t, handler, func(t *testing.T, hook *webhook.Hook, isMutating bool) {
			e := serve(t, webhook.Options{}, hook)
			for _, version := range versions {
				t.Run(name+" "+string(version), func(t *testing.T) {
					c := call{version: version}
					check(t, e.post(t, hook.Path()+"?timeout="+timeout, c.body()), c, isMutating)
				})
			}
		})
	}
}

func TestW9_01_AcceptsPOSTAtTheSlashTrimmedPathWithoutRedirect(t *testing.T) {
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "pods.example.com", Rules: everything,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://localhost/check/pods/")},
	}, admit)
	e := serve(t, webhook.Options{}, hook)
	if hook.Path() != "/check/pods" {
		t.Errorf("the hook is served at %q, but the API server asks for /check/pods", hook.Path())
	}
	for _, path := range []string{"/check/pods", "/check/pods/", "//check//pods", "/check/./pods", "/check/pods?timeout=5s"} {
		e.post(t, path, call{}.body()).allowed(t, call{}, false)
	}
}

func TestW9_02_HonoursTimeoutLessAMarginAndIgnoresOtherParameters(t *testing.T) {
	var left time.Duration
	hook := validating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			return errors.New("no deadline")
		}
		left = time.Until(deadline)
		return nil
	})
	e := serve(t, webhook.Options{}, hook)
	for query, below := range map[string]time.Duration{
		"?timeout=2s": 2 * time.Second, "?trace=1&timeout=2s&x": 2 * time.Second,
		"": 5 * time.Second, "?trace=1": 5 * time.Second, "?timeout=soon": 5 * time.Second, "?timeout=-1s": 5 * time.Second,
	} {
		e.post(t, hook.Path()+query, call{}.body()).allowed(t, call{}, false)
		if left >= below {
			t.Errorf("%q: the handler has %s, want less than %s", query, left, below)
		}
	}
}

func TestW9_03_Accepts7MiBAndRefusesMoreThanItsLimitWith413(t *testing.T) {
	hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		old, err := req.OldObject()
		if err == nil && (len(req.Object.Annotations["a"]) != 3<<20 || len(old.Annotations["a"]) != 3<<20) {
			err = errors.New("the objects were cut")
		}
		return err
	})
	e := serve(t, webhook.Options{}, hook)
	object := fmt.Sprintf(`{"metadata":{"annotations":{"a":"%s"}}}`, strings.Repeat("x", 3<<20))
	c := call{operation: admissionv1.Update, object: object, oldObject: object, more: fmt.Sprintf(`"x":%q`, strings.Repeat("x", 1<<20))}
	if n := len(c.body()); n < 7<<20 {
		t.Fatalf("the body has only %d bytes", n)
	}
	path := hook.Path() + "?timeout=30s" // a busy machine needs seconds for this body
	e.post(t, path, c.body()).allowed(t, c, false)
	small := serve(t, webhook.Options{MaxBodyBytes: 7 << 20}, hook)
	if status := small.post(t, path, c.body()).failed(t); status.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %+v", status)
	}
}

func TestW9_04_ToleratesOldAndNewRequests(t *testing.T) {
	hook := mutating(func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.RequestKind != req.Kind || req.RequestResource != req.Resource {
			return fmt.Errorf("requestKind %v, kind %v", req.RequestKind, req.Kind)
		}
		return label(ctx, req)
	})
	e := serve(t, webhook.Options{}, hook)
	const want = `[{"op":"add","path":"/metadata/labels","value":{"shop.example.com/seen":"yes"}}]`
	for reason, c := range map[string]call{
		"a newer server has more members":  {more: `"future":{"a":[1]}`},
		"an older one has a null time":     {object: `{"metadata":{"name":"x","creationTimestamp":null}}`},
		"this one leaves it out":           {object: `{"metadata":{"name":"x"}}`},
		"an old one has no requestKind":    {},
		"a new one repeats kind always":    {more: `"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"}`},
		"null is as good as a missing one": {more: `"requestKind":null,"requestResource":null,"dryRun":null`},
	} {
		row(t, reason, func(t *testing.T) {
			if patch, _ := e.ask(t, hook, c).allowed(t, c, true); patch != want {
				t.Errorf("got patch %s", patch)
			}
		})
	}
}

func TestW9_05_AnswersInTheVersionReceived(t *testing.T) {
	both(t, admit, func(t *testing.T, hook *webhook.Hook, isMutating bool) {
		e := serve(t, webhook.Options{}, hook)
		for _, version := range versions {
			c := call{version: version}
			e.ask(t, hook, c).allowed(t, c, isMutating) // compares the version
		}
	})
}

func TestW9_06_EchoesTheUIDOnEveryPath(t *testing.T) {
	uids := []string{"705ab4f5-6393-11e8-b7cc-42010a800002", `"quoted" <&> \ ` + "\u2028é", strings.Repeat("u", 5000)}
	hook := validating(admit)
	e := serve(t, webhook.Options{}, hook)
	for _, uid := range uids {
		e.ask(t, hook, call{uid: uid}).allowed(t, call{uid: uid}, false)
	}
	forEach(t, refusals, func(t *testing.T, a answer, c call, isMutating bool) { a.denied(t, c, isMutating) })
	forEach(t, failures, func(t *testing.T, a answer, _ call, _ bool) {
		if status := a.failed(t); status.Details == nil || status.Details.UID != "u-1" {
			t.Errorf("the uid is not in the details: %s", a.body)
		}
	})
}

func TestW9_07_SendsEveryDecisionAs200WithJSON(t *testing.T) {
	forEach(t, refusals, func(t *testing.T, a answer, c call, isMutating bool) { a.accepted(t, c, isMutating) })
	hook := mutating(label)
	serve(t, webhook.Options{}, hook).ask(t, hook, call{}).accepted(t, call{}, true)
}

func TestW9_08_NeverDeniesByHTTPStatus(t *testing.T) {
	forEach(t, refusals, func(t *testing.T, a answer, c call, isMutating bool) {
		if a.code != http.StatusOK {
			t.Errorf("a refusal became HTTP %d, which Ignore admits", a.code)
		}
	})
}

func TestW9_09_UsesHTTPErrorsForFailuresToDecide(t *testing.T) {
	forEach(t, failures, func(t *testing.T, a answer, _ call, _ bool) { a.failed(t) })
}

func TestW9_10_NeverReportsAFailureAsADenial(t *testing.T) {
	forEach(t, failures, func(t *testing.T, a answer, _ call, _ bool) {
		if bytes.Contains(a.body, []byte("allowed")) || a.code == http.StatusOK {
			t.Errorf("got %d %s", a.code, a.body)
		}
	})
}

func TestW9_11_SendsOneDocumentAndNothingElse(t *testing.T) {
	check := func(t *testing.T, a answer, _ call, _ bool) {
		decoder := json.NewDecoder(bytes.NewReader(a.body))
		var document map[string]any
		if err := decoder.Decode(&document); err != nil {
			t.Fatal(err)
		}
		if decoder.More() || a.header.Get("Content-Length") != fmt.Sprint(len(a.body)) {
			t.Errorf("more than one document, or another length than %s: %q", a.header.Get("Content-Length"), a.body)
		}
	}
	forEach(t, refusals, check)
	forEach(t, failures, check)
}

func TestW9_12_OmitsPatchAndPatchTypeWhenNothingChanged(t *testing.T) {
	for name, handler := range map[string]func(context.Context, *webhook.Request[corev1.Pod]) error{
		"nothing": admit,
		"there and back": func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			*req.Object = *req.Object.DeepCopy()
			return nil
		},
		"empty for nil": func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			req.Object.Labels = map[string]string{}
			return nil
		},
		"only a warning":  func(_ context.Context, req *webhook.Request[corev1.Pod]) error { req.Warn("look"); return nil },
		"the same string": func(_ context.Context, req *webhook.Request[corev1.Pod]) error { req.Object.Name = "web"; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			hook := mutating(handler)
			a := serve(t, webhook.Options{}, hook).ask(t, hook, call{})
			a.accepted(t, call{}, true)
			if bytes.Contains(a.body, []byte("patch")) {
				t.Errorf("got %s", a.body)
			}
		})
	}
}

func TestW9_13_SendsPatchAndPatchTypeTogether(t *testing.T) {
	hook := mutating(label)
	e := serve(t, webhook.Options{}, hook)
	for _, version := range versions {
		a := e.ask(t, hook, call{version: version})
		var wire struct{ Response map[string]any }
		if err := json.Unmarshal(a.body, &wire); err != nil || wire.Response["patchType"] != "JSONPatch" {
			t.Fatalf("got %s (%v)", a.body, err)
		}
		if patch, err := base64.StdEncoding.DecodeString(fmt.Sprint(wire.Response["patch"])); err != nil || !json.Valid(patch) {
			t.Errorf("got %s (%v)", a.body, err)
		}
	}
}

func TestW9_14_ValidatingHooksNeverSendAPatch(t *testing.T) {
	hook := validating(label)
	e := serve(t, webhook.Options{}, hook)
	for _, version := range versions {
		a := e.ask(t, hook, call{version: version})
		a.accepted(t, call{version: version}, false)
		if bytes.Contains(a.body, []byte("patch")) {
			t.Errorf("got %s", a.body)
		}
	}
}

func TestW9_15_DenialsNeverCarryAPatch(t *testing.T) {
	forEach(t, refusals, func(t *testing.T, a answer, c call, isMutating bool) {
		if a.denied(t, c, isMutating); bytes.Contains(a.body, []byte("patch")) {
			t.Errorf("got %s", a.body)
		}
	})
}

func TestW9_16_DenialsHaveCodeReasonAndMessage(t *testing.T) {
	forEach(t, refusals, func(t *testing.T, a answer, c call, isMutating bool) {
		status := a.denied(t, c, isMutating)
		if status.Code < 400 || status.Code > 599 || status.Reason == "" || status.Message == "" || status.Status != metav1.StatusFailure {
			t.Errorf("got %+v", status)
		}
		if strings.Contains(status.Message, "pods.example.com") {
			t.Errorf("the API server puts the name before %q itself", status.Message)
		}
	})
}

func TestW9_17_NeverSendsACodeOf600OrMore(t *testing.T) {
	for _, code := range []int32{600, 999, 1000, 1 << 30, -1, 0, 200, 302} {
		hook := validating(func(context.Context, *webhook.Request[corev1.Pod]) error {
			return webhook.DenyStatus(metav1.Status{Code: code, Message: "no"})
		})
		if got := serve(t, webhook.Options{}, hook).ask(t, hook, call{}).denied(t, call{}, false).Code; got != http.StatusForbidden {
			t.Errorf("code %d became %d, want 403", code, got)
		}
	}
}

func TestW9_18_PatchesKeepFieldsTheTypeDoesNotKnow(t *testing.T) {
	hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object.Spec.Containers = slices.Insert(req.Object.Spec.Containers, 0, corev1.Container{Name: "proxy", Image: "proxy:1"})
		req.Object.Spec.Containers[1].Image = "app:2"
		return nil
	})
	c := call{object: `{"new":1,"spec":{"new":2,"containers":[{"name":"app","image":"app:1","new":3,"resources":{"new":4}}]}}`}
	_, patched := serve(t, webhook.Options{}, hook).ask(t, hook, c).allowed(t, c, true)
	wantJSON(t, patched, `{"new":1,"spec":{"new":2,"containers":[{"name":"proxy","image":"proxy:1","resources":{}},
		{"name":"app","image":"app:2","new":3,"resources":{"new":4}}]}}`)
}

func TestW9_19_PatchesCreateParentsAndEscape(t *testing.T) {
	hook := mutating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object.Annotations = map[string]string{"a/b~c": "1"}
		req.Object.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7)}
		return nil
	})
	e := serve(t, webhook.Options{}, hook)
	for object, want := range map[string]string{
		`{}`:                                 `{"metadata":{"annotations":{"a/b~c":"1"}},"spec":{"containers":null,"securityContext":{"runAsUser":7}}}`,
		`{"metadata":null,"spec":{"new":1}}`: `{"metadata":{"annotations":{"a/b~c":"1"}},"spec":{"new":1,"securityContext":{"runAsUser":7}}}`,
		`{"metadata":{"annotations":{"a/b~c":"0","a":"2"}},"spec":{"securityContext":{"new":1}}}`: `{"metadata":{"annotations":{"a/b~c":"1"}},"spec":{"securityContext":{"new":1,"runAsUser":7}}}`,
	} {
		c := call{object: object}
		_, patched := e.ask(t, hook, c).allowed(t, c, true)
		wantJSON(t, patched, want)
	}
}
