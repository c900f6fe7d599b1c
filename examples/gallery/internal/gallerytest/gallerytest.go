// SPDX-License-Identifier: Apache-2.0

// Package gallerytest has helpers for the tests of the gallery.
package gallerytest

import (
	"context"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// Pod applies the changes to a Pod with one container, and returns it.
func Pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// Call calls the hook with a CREATE, or with an UPDATE if old is not nil. It returns the decision and the
// patched Pod.
func Call(t *testing.T, hook *webhook.Hook, pod, old *corev1.Pod) (*admissionv1.AdmissionResponse, *corev1.Pod) {
	t.Helper()
	req := request(t, pod, old)
	decision := webhooktest.Decision(t, hook, req)
	return decision, webhooktest.Patched[corev1.Pod](t, req, decision)
}

// Fails calls the hook as Call does, and requires that the call fails without a decision. It returns the error message.
func Fails(t *testing.T, hook *webhook.Hook, pod, old *corev1.Pod) string {
	t.Helper()
	return webhooktest.Failure(t, hook, request(t, pod, old)).Message
}

func request(t *testing.T, pod, old *corev1.Pod) *admissionv1.AdmissionRequest {
	op := admissionv1.Create
	if old != nil {
		op = admissionv1.Update
	}
	return webhooktest.Request(t, op, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod, old)
}

// On calls the hook for an object of any kind. It returns the decision and the patched object. On DELETE, object must
// be nil.
func On[T any](t *testing.T, hook *webhook.Hook, op admissionv1.Operation, kind schema.GroupVersionKind, resource string, object, old *T) (*admissionv1.AdmissionResponse, *T) {
	t.Helper()
	req := webhooktest.Request(t, op, kind, resource, object, old)
	decision := webhooktest.Decision(t, hook, req)
	return decision, webhooktest.Patched[T](t, req, decision)
}

// Lister returns an indexer with these objects, for a lister of client-go.
func Lister(t *testing.T, objects ...runtime.Object) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

// Denied checks that the decision is a denial with the code 403 and this message. If the message is empty, the decision
// must allow the request.
func Denied(t *testing.T, decision *admissionv1.AdmissionResponse, message string) {
	t.Helper()
	switch {
	case decision.Allowed != (message == ""):
		t.Errorf("allowed is %v: %v", decision.Allowed, decision.Result)
	case !decision.Allowed && (decision.Result.Code != http.StatusForbidden || decision.Result.Message != message):
		t.Errorf("got %d %s, want %s", decision.Result.Code, decision.Result.Message, message)
	}
}

// Namespaces returns a reader of Namespaces. The argument maps the name of each Namespace to its annotations.
func Namespaces(annotations map[string]map[string]string) *reads.Reader[*corev1.Namespace] {
	var all []*corev1.Namespace
	for name, a := range annotations {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: a}})
	}
	return NamespaceReader(all...)
}

// NamespaceReader returns a reader of these Namespaces.
func NamespaceReader(all ...*corev1.Namespace) *reads.Reader[*corev1.Namespace] {
	get := func(name string) (*corev1.Namespace, error) {
		for _, namespace := range all {
			if namespace.Name == name {
				return namespace, nil
			}
		}
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	reader, err := reads.New(reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Cached:   func(_, name string) (*corev1.Namespace, error) { return get(name) },
		Live:     func(_ context.Context, _, name string) (*corev1.Namespace, error) { return get(name) },
	})
	if err != nil {
		panic(err) // impossible: all required options are set above
	}
	return reader
}

// Idempotent runs the harness on a mutating hook. The hook must change the samples.
func Idempotent(t *testing.T, hook func() *webhook.Hook, samples ...runtime.Object) {
	t.Helper()
	check(t, *hook().MutatingWebhook(), hook, idempotence.Options{}, samples)
}

// IdempotentExcept runs the harness as Idempotent does, but without the law. Use it if the law fails on every
// operation, as it does for the original admission controller. The reason is logged.
func IdempotentExcept(t *testing.T, law idempotence.Law, reason string, hook func() *webhook.Hook, samples ...runtime.Object) {
	t.Helper()
	t.Logf("%s is not checked: %s", law, reason)
	check(t, *hook().MutatingWebhook(), hook, idempotence.Options{Without: []idempotence.Law{law}}, samples)
}

// IdempotentExceptAt runs the harness as Idempotent does, but ignores changes at the field path. Use it if the hook
// writes another value there in each call, as the original admission controller does. The report repeats the reason.
func IdempotentExceptAt(t *testing.T, path, reason string, hook func() *webhook.Hook, samples ...runtime.Object) {
	t.Helper()
	check(t, *hook().MutatingWebhook(), hook, idempotence.Options{Exceptions: []idempotence.Exception{{Path: path, Reason: reason}}}, samples)
}

// IdempotentWithout runs the harness twice: without the law, and with all laws for CREATE only. Use it if the law fails
// on UPDATE, as it does for the original admission controller.
func IdempotentWithout(t *testing.T, law idempotence.Law, hook func() *webhook.Hook, samples ...runtime.Object) {
	t.Helper()
	of := *hook().MutatingWebhook()
	check(t, of, hook, idempotence.Options{Without: []idempotence.Law{law}}, samples)
	for i := range of.Rules {
		of.Rules[i].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	}
	check(t, of, hook, idempotence.Options{}, samples)
}

func check(t *testing.T, of admissionregistrationv1.MutatingWebhook, hook func() *webhook.Hook, options idempotence.Options, samples []runtime.Object) {
	t.Helper()
	options.Objects = 10
	options.Budget = 10 * time.Minute // enough for a slow machine
	options.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}}
	options.Samples = samples
	idempotence.Check(t, idempotence.Handler(of, func() http.Handler { return hook() }), options)
}
