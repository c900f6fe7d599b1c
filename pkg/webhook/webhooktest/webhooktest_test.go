// SPDX-License-Identifier: Apache-2.0

package webhooktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // failures are expected here
	os.Exit(m.Run())
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func label(fails error) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name:  "label.example.com",
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "by", req.UserInfo.Username)
		return fails
	})
}

func TestDecisionAndPatched(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	req := webhooktest.Request(t, admissionv1.Update, podKind, "pods", pod, `{"metadata":{"name":"old"}}`)
	req.UserInfo.Username = "ada"
	if req.Namespace != "shop" || req.Name != "web" || req.Resource.Resource != "pods" || req.SubResource != "" {
		t.Errorf("request %+v", req)
	}
	d := webhooktest.Decision(t, label(nil), req)
	if got := webhooktest.Patched[corev1.Pod](t, req, d); !d.Allowed || got.Labels["by"] != "ada" || got.Name != "web" {
		t.Errorf("%+v gave %+v", d, got)
	}
	if d := webhooktest.Decision(t, label(webhook.Deny("no")), req); d.Allowed || d.Result.Message != "no" {
		t.Errorf("got %+v, want a denial", d)
	}
}

func TestDocumentsAreAsTheAPIServerSendsThem(t *testing.T) {
	for _, object := range []any{&corev1.Pod{}, `{}`, []byte(`{}`), json.RawMessage(`{}`)} {
		req := webhooktest.Request(t, admissionv1.Create, podKind, "pods", object, nil)
		hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name:  "kind.example.com",
			Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, func(_ context.Context, req *webhook.Request[unstructured.Unstructured]) error {
			var options metav1.CreateOptions
			return errors.Join(req.DecodeOptions(&options), webhook.Deny(req.Object.GetAPIVersion()+" "+req.Object.GetKind()+" "+options.Kind))
		})
		if d := webhooktest.Decision(t, hook, req); d.Allowed || d.Result.Message != "v1 Pod CreateOptions" {
			t.Errorf("%T: got %+v", object, d.Result)
		}
	}
}

func TestTypedNilIsNotAnObject(t *testing.T) {
	var none *corev1.Pod
	for _, old := range []any{none, json.RawMessage(nil), []byte(nil), map[string]any(nil)} {
		req := webhooktest.Request(t, admissionv1.Create, podKind, "pods", `{"metadata":{"name":"web"}}`, old)
		if req.OldObject.Raw != nil || req.Name != "web" {
			t.Errorf("%T: got old object %s of %q", old, req.OldObject.Raw, req.Name)
		}
	}
	if req := webhooktest.Request(t, admissionv1.Delete, podKind, "pods", none, &corev1.Pod{}); req.Object.Raw != nil {
		t.Errorf("got object %s", req.Object.Raw)
	}
}

func TestFailure(t *testing.T) {
	req := webhooktest.Request(t, admissionv1.Create, podKind, "pods", `{}`, nil)
	if got := webhooktest.Failure(t, label(errors.New("broken")), req); got.Code != 500 || got.Message != "broken" {
		t.Errorf("got %+v", got)
	}
}

func TestRequestOfASubresource(t *testing.T) {
	scale := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:  "scale.example.com",
		Rules: webhook.Rules(webhook.OnUpdate("apps", "v1", "deployments/scale")),
	}, func(_ context.Context, req *webhook.Request[autoscalingv1.Scale]) error {
		return webhook.Denyf("%d", req.Object.Spec.Replicas)
	})
	req := webhooktest.Request(t, admissionv1.Update, autoscalingv1.SchemeGroupVersion.WithKind("Scale"), "deployments/scale",
		`{"spec":{"replicas":3}}`, `{"spec":{"replicas":2}}`)
	req.Resource.Group = "apps"
	if d := webhooktest.Decision(t, scale, req); d.Allowed || d.Result.Message != "3" {
		t.Errorf("got %+v", d)
	}
}

// recordingTB is a testing.TB that records the message of a fatal error, and panics instead of ending the test.
type recordingTB struct {
	testing.TB
	text string
}

func (f *recordingTB) Helper()                      {}
func (f *recordingTB) Fatal(args ...any)            { f.text = fmt.Sprint(args...); panic(f) }
func (f *recordingTB) Fatalf(s string, args ...any) { f.text = fmt.Sprintf(s, args...); panic(f) }

// TestUnexpectedAnswersFailTheTest calls each function with an answer or an argument that is invalid. The function must
// fail the test with the expected message.
func TestUnexpectedAnswersFailTheTest(t *testing.T) {
	pod := webhooktest.Request(t, admissionv1.Create, podKind, "pods", `{}`, nil)
	for _, row := range []struct {
		reason, want string
		run          func(tb testing.TB)
	}{
		{
			"a failure instead of a decision", `the webhook failed to decide, with HTTP 500: {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"broken","reason":"InternalError","details":{"uid":"webhooktest"},"code":500}` + "\n",
			func(tb testing.TB) { webhooktest.Decision(tb, label(errors.New("broken")), pod) },
		},
		{
			"a decision instead of a failure", `want a failure to decide, got a decision, with HTTP 200: {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"webhooktest","allowed":false,"status":{"metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403}}}` + "\n",
			func(tb testing.TB) { webhooktest.Failure(tb, label(webhook.Deny("no")), pod) },
		},
		{
			"a patch that does not apply", "the patch does not apply: error in remove for path: '/a': Unable to remove nonexistent key: a: missing value\n" + `[{"op":"remove","path":"/a"}]`,
			func(tb testing.TB) {
				webhooktest.Patched[corev1.Pod](tb, pod, &admissionv1.AdmissionResponse{Patch: []byte(`[{"op":"remove","path":"/a"}]`)})
			},
		},
		{
			"a delete has no new object", "DELETE: CREATE and CONNECT take an object, UPDATE an object and the old one, DELETE the old one only",
			func(tb testing.TB) { webhooktest.Request(tb, admissionv1.Delete, podKind, "pods", "{}", nil) },
		},
		{
			"an update needs an old object, and a nil pointer is not one", "UPDATE: CREATE and CONNECT take an object, UPDATE an object and the old one, DELETE the old one only",
			func(tb testing.TB) {
				webhooktest.Request(tb, admissionv1.Update, podKind, "pods", "{}", (*corev1.Pod)(nil))
			},
		},
		{
			"an unknown operation", `operation "create" is unknown: use one of ["CREATE" "UPDATE" "DELETE" "CONNECT"]`,
			func(tb testing.TB) { webhooktest.Request(tb, "create", podKind, "pods", "{}", nil) },
		},
		{
			"null is not an object", "want a JSON object: it is null: null",
			func(tb testing.TB) { webhooktest.Request(tb, admissionv1.Create, podKind, "pods", "null", nil) },
		},
		{
			"a list is not an object", "want a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage: []",
			func(tb testing.TB) { webhooktest.Request(tb, admissionv1.Create, podKind, "pods", "[]", nil) },
		},
	} {
		tb := &recordingTB{TB: t}
		func() {
			defer func() { _ = recover() }()
			row.run(tb)
		}()
		if tb.text != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.reason, tb.text, row.want)
		}
	}
}
