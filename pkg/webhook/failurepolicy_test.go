// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/review"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	deniedBy = `admission webhook "pods.example.com" denied the request: `
	failedTo = `Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: `
)

type outcome struct {
	reason  string
	make    makeHook
	slow    bool // needs a fake clock
	gone    bool // the server has stopped
	denial  bool
	code    int32
	status  metav1.StatusReason
	message string
	causes  []metav1.StatusCause
}

// outcomes lists how a call can end, and what the user then sees. A denial rejects the request under both failure
// policies. A failure rejects it under Fail and has no effect under Ignore.
var outcomes = []outcome{
	{reason: "nothing is wrong", make: around(admit)},
	{reason: "a mutation, if the hook is mutating", make: around(label)},
	{reason: "a denial", make: returning(webhook.Denyf("tag %q is not allowed", "latest")), denial: true,
		code: 403, status: "Forbidden", message: deniedBy + `tag "latest" is not allowed`},
	{reason: "a wrapped denial keeps the words around it", make: returning(fmt.Errorf("container app: %w", webhook.Deny("no tag"))), denial: true,
		code: 403, status: "Forbidden", message: deniedBy + `container app: no tag`},
	{reason: "field errors are causes", denial: true, code: 422, status: "Invalid",
		make: returning(webhook.DenyInvalid(field.ErrorList{
			field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), "name one"),
			field.NotSupported(field.NewPath("spec", "dnsPolicy"), "None", []string{"Default"})})),
		message: deniedBy + `Pod "web" is invalid: [spec.containers[0].image: Required value: name one, spec.dnsPolicy: Unsupported value: "None": supported values: "Default"]`,
		causes: []metav1.StatusCause{
			{Type: "FieldValueRequired", Message: "Required value: name one", Field: "spec.containers[0].image"},
			{Type: "FieldValueNotSupported", Message: `Unsupported value: "None": supported values: "Default"`, Field: "spec.dnsPolicy"}}},
	{reason: "an API error that is the client's fault denies", denial: true, code: 409, status: "Conflict",
		make:    returning(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("it changed"))),
		message: deniedBy + `Operation cannot be fulfilled on pods "web": it changed`},
	{reason: "a denial with a server's code is still a denial", denial: true, code: 503, status: "ServiceUnavailable",
		make: returning(webhook.DenyStatus(metav1.Status{Code: http.StatusServiceUnavailable, Message: "closed for today"})), message: deniedBy + `closed for today`},
	{reason: "a plain error", make: returning(errors.New("the database is down")), message: failedTo + `the database is down`},
	{reason: "an API error that is not the client's fault", make: returning(apierrors.NewServiceUnavailable("etcd is away")), message: failedTo + `etcd is away`},
	{reason: "a panic", make: around(func(context.Context, *webhook.Request[corev1.Pod]) error { panic("index out of luck") }),
		message: failedTo + `the handler panicked: index out of luck`},
	{reason: "a goroutine that ends", make: around(func(context.Context, *webhook.Request[corev1.Pod]) error { runtime.Goexit(); return nil }),
		message: failedTo + `the handler ended its goroutine`},
	{reason: "a handler that waits for its context", slow: true, make: around(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
		<-ctx.Done()
		return fmt.Errorf("asking around: %w", ctx.Err())
	}), message: failedTo + `context deadline exceeded: the handler did not decide within 9s`},
	{reason: "a handler that ignores its context", slow: true, make: around(func(context.Context, *webhook.Request[corev1.Pod]) error {
		<-time.After(20 * time.Second)
		return nil
	}),
		message: failedTo + `context deadline exceeded: the handler did not decide within 9s`},
	{reason: "an object that does not decode", make: around(func(context.Context, *webhook.Request[misread]) error { return nil }),
		message: failedTo + `cannot decode object as webhook_test.misread: spec.containers: want string, got array`},
	{reason: "a wrong kind", make: func(isMutating bool, policy admissionregistrationv1.FailurePolicyType, version review.Version) *webhook.Hook {
		return around(admit)(isMutating, policy, version).WithKinds(gvk("*/v1/Deployment"))
	}, message: failedTo + `the hook handles kind Deployment (v1), not kind Pod (v1)`},
	{reason: "the server is down", make: around(admit), gone: true,
		message: failedTo + `Post "{url}?timeout=10s": dial tcp {addr}: connect: connection refused`},
}

// misread is a projection with a field of the wrong type.
type misread struct {
	Spec struct {
		Containers string `json:"containers"`
	} `json:"spec"`
}

// TestFailurePolicy calls hooks with every outcome through the API server's own plugins and client, under Fail and
// Ignore. It checks the status that the user sees.
func TestFailurePolicy(t *testing.T) {
	for _, want := range outcomes {
		row(t, want.reason, func(t *testing.T) {
			for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
				for _, version := range versions {
					for _, isMutating := range []bool{true, false} {
						t.Run(fmt.Sprintf("%s %s mutating=%t", policy, version, isMutating), func(t *testing.T) {
							hook := want.make(isMutating, policy, version)
							if want.slow {
								synctest.Test(t, func(t *testing.T) {
									want.test(t, hook, policy, serveInMemory(t, webhook.Options{}, hook))
									<-time.After(time.Minute) // until the handler that ignores its context returns
								})
							} else {
								want.test(t, hook, policy, serve(t, webhook.Options{}, hook))
							}
						})
					}
				}
			}
		})
	}
}

func (want outcome) test(t *testing.T, hook *webhook.Hook, policy admissionregistrationv1.FailurePolicyType, e *endpoint) {
	t.Helper()
	if want.gone {
		_ = e.stop()
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	got := newChain(t, e, hook).create(t.Context(), pod)
	message := strings.NewReplacer("{url}", e.url+hook.Path(), "{addr}", strings.TrimPrefix(e.url, "https://")).Replace(want.message)
	switch {
	case want.message == "", !want.denial && policy == admissionregistrationv1.Ignore:
		if got != nil {
			t.Errorf("got %+v, want the Pod to be admitted", got)
		}
	case want.denial:
		compare(t, got, want.code, want.status, message, want.causes)
	default:
		compare(t, got, http.StatusInternalServerError, metav1.StatusReasonInternalError, message,
			[]metav1.StatusCause{{Message: strings.TrimPrefix(message, "Internal error occurred: ")}})
	}
}

func compare(t *testing.T, got *metav1.Status, code int32, reason metav1.StatusReason, message string, causes []metav1.StatusCause) {
	t.Helper()
	if got == nil {
		t.Fatalf("admitted, want %q", message)
	}
	if got.Code != code || got.Reason != reason || got.Message != message || got.Status != metav1.StatusFailure {
		t.Errorf("\n got %d %s %s\nwant %d %s %s", got.Code, got.Reason, got.Message, code, reason, message)
	}
	var have []metav1.StatusCause
	if got.Details != nil {
		have = got.Details.Causes
	}
	if fmt.Sprint(have) != fmt.Sprint(causes) {
		t.Errorf("\n got %+v\nwant %+v", have, causes)
	}
}

type makeHook func(isMutating bool, policy admissionregistrationv1.FailurePolicyType, version review.Version) *webhook.Hook

// around returns a function that creates a hook with this handler.
func around[T any](handler func(context.Context, *webhook.Request[T]) error) makeHook {
	return func(isMutating bool, policy admissionregistrationv1.FailurePolicyType, version review.Version) *webhook.Hook {
		if isMutating {
			return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
				Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")), FailurePolicy: &policy,
				AdmissionReviewVersions: []string{string(version)}, TimeoutSeconds: new(int32(10)), NamespaceSelector: &metav1.LabelSelector{},
			}, handler)
		}
		return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "pods.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")), FailurePolicy: &policy,
			AdmissionReviewVersions: []string{string(version)}, TimeoutSeconds: new(int32(10)), NamespaceSelector: &metav1.LabelSelector{},
		}, handler)
	}
}

func returning(err error) makeHook {
	return around(func(context.Context, *webhook.Request[corev1.Pod]) error { return err })
}
