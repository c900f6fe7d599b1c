// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	mutating   = "mutating"
	validating = "validating"
)

var hookKinds = []string{mutating, validating}

// hookOf returns a mutating or validating hook for a registration.
func hookOf[T any](kind string, r admissionregistrationv1.ValidatingWebhook, handle func(context.Context, *webhook.Request[T]) error) *webhook.Hook {
	if kind == validating {
		return webhook.Validating(r, handle)
	}
	return webhook.Mutating(asMutating(r), handle)
}

func asMutating(r admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: r.Name, ClientConfig: r.ClientConfig, Rules: r.Rules, FailurePolicy: r.FailurePolicy, MatchPolicy: r.MatchPolicy,
		NamespaceSelector: r.NamespaceSelector, ObjectSelector: r.ObjectSelector, SideEffects: r.SideEffects,
		TimeoutSeconds: r.TimeoutSeconds, AdmissionReviewVersions: r.AdmissionReviewVersions, MatchConditions: r.MatchConditions,
	}
}

// configMap returns a small valid ConfigMap.
func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"replicas": "three"},
	}
}

func createConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return clients.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, name), metav1.CreateOptions{})
}

// A countOf is a projection of ConfigMap whose data are numbers. ConfigMaps cannot be decoded into it, because their
// data are strings.
type countOf struct {
	Data map[string]int `json:"data"`
}

// A fault is a reason for a call to fail.
type fault struct {
	name string // part of the spec's text
	// handle is the handler for the object "faulty". If it is nil, hook, url or ca make the call fail.
	handle func(ctx context.Context, released <-chan struct{}) error
	hook   func(kind string, r admissionregistrationv1.ValidatingWebhook) *webhook.Hook
	url    string
	ca     func() []byte
	// message matches the text that the user reads after `failed calling webhook "<name>": failed to call webhook: `.
	message OmegaMatcher
}

var faults = []fault{
	{
		name: "a handler that stops at the deadline",
		handle: func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return fmt.Errorf("asking the registry: %w", ctx.Err())
		},
		message: Equal("context deadline exceeded: the handler did not decide within 900ms"),
	},
	{
		name: "a handler that ignores the deadline",
		handle: func(_ context.Context, released <-chan struct{}) error {
			<-released
			return nil
		},
		message: Equal("context deadline exceeded: the handler did not decide within 900ms"),
	},
	{
		name:    "a panic",
		handle:  func(context.Context, <-chan struct{}) error { panic("index out of range") },
		message: Equal("the handler panicked: index out of range"),
	},
	{
		name:    "a plain error",
		handle:  func(context.Context, <-chan struct{}) error { return errors.New("the registry cannot be reached") },
		message: Equal("the registry cannot be reached"),
	},
	{
		name: "an API error with a 5xx code that the handler returns",
		handle: func(context.Context, <-chan struct{}) error {
			return fmt.Errorf("reading the policy: %w", apierrors.NewServerTimeout(schema.GroupResource{Resource: "policies"}, "get", 0))
		},
		message: Equal("reading the policy: The get operation against policies could not be completed at this time, please try again."),
	},
	{
		name: "an object that does not decode into the type of the hook",
		hook: func(kind string, r admissionregistrationv1.ValidatingWebhook) *webhook.Hook {
			return hookOf(kind, r, func(context.Context, *webhook.Request[countOf]) error { return nil })
		},
		message: Equal("cannot decode object as e2e.countOf: data.replicas: want int, got string"),
	},
	{
		name: "an object of a kind that the hook does not handle",
		hook: func(kind string, r admissionregistrationv1.ValidatingWebhook) *webhook.Hook {
			return hookOf(kind, r, admitAll).WithKinds(metav1.GroupVersionKind{Group: "*", Version: "v1", Kind: "Secret"})
		},
		message: Equal("the hook handles kind Secret (v1), not kind ConfigMap (v1)"),
	},
	{
		name:    "a refused connection",
		url:     "https://127.0.0.1:1",
		message: Equal(`Post "https://127.0.0.1:1/hook?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused`),
	},
	{
		name: "a certificate that no CA of the caBundle signed",
		ca: func() []byte {
			other, err := devcert.NewCA()
			Expect(err).NotTo(HaveOccurred())
			return other.Bundle
		},
		message: ContainSubstring("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
	},
}

// install registers a hook with this fault and failure policy, for one namespace.
func (f fault) install(ctx context.Context, kind, version, namespace string, policy admissionregistrationv1.FailurePolicyType) {
	GinkgoHelper()
	released := make(chan struct{})
	DeferCleanup(func() { close(released) })
	registration := admissionregistrationv1.ValidatingWebhook{
		Name:                    "faulty.example.com",
		NamespaceSelector:       only(namespace),
		AdmissionReviewVersions: []string{version},
		Rules:                   webhook.Rules(webhook.OnWrite("", "v1", "configmaps")),
		FailurePolicy:           &policy,
		TimeoutSeconds:          new(int32(1)),
	}
	if f.url != "" {
		registration.ClientConfig.URL = new(f.url + "/hook")
	}
	hook := hookOf(kind, registration, func(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
		if req.Name != "faulty" || f.handle == nil {
			return nil
		}
		req.Object.Data["changed"] = "yes"
		req.Warn("seen")
		return f.handle(ctx, released)
	})
	if f.hook != nil {
		hook = f.hook(kind, registration)
	}
	options := webhook.ConfigurationOptions{URL: serve(hook)}
	if f.ca != nil {
		options.CABundle = f.ca()
	}
	installWith(ctx, options, hook)
	if f.handle != nil {
		// The call of the spec has a short timeout, so open the connection before it.
		_, err := createConfigMap(ctx, namespace, "sound")
		Expect(err).NotTo(HaveOccurred())
	}
}

var _ = Describe("failures", func() {
	for _, kind := range hookKinds {
		failedOpen := map[string]string{
			mutating:   "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0",
			validating: "failed-open.validating.webhook.admission.k8s.io/round_0_index_0",
		}[kind]
		for _, version := range reviewVersions {
			Context("of a "+kind+" hook called with "+version+" reviews", func() {
				for _, f := range faults {
					It("reject the request under failurePolicy Fail, with the reason: "+f.name, func(ctx context.Context) {
						ns := newNamespace(ctx)
						f.install(ctx, kind, version, ns, admissionregistrationv1.Fail)
						_, err := createConfigMap(ctx, ns, "faulty")
						Expect(apierrors.IsInternalError(err)).To(BeTrue(), "%v", err)
						var status apierrors.APIStatus
						Expect(errors.As(err, &status)).To(BeTrue())
						Expect(status.Status().Code).To(BeEquivalentTo(500))
						why, ok := strings.CutPrefix(err.Error(), `Internal error occurred: failed calling webhook "faulty.example.com": failed to call webhook: `)
						Expect(ok).To(BeTrue(), "%v", err)
						Expect(why).To(f.message)
						Expect(audited(ctx, "create", ns, "faulty")).NotTo(HaveKey(failedOpen))
					})

					It("admit the unchanged object under failurePolicy Ignore, with an audit annotation: "+f.name, func(ctx context.Context) {
						ns := newNamespace(ctx)
						f.install(ctx, kind, version, ns, admissionregistrationv1.Ignore)
						created, err := createConfigMap(ctx, ns, "faulty")
						Expect(err).NotTo(HaveOccurred())
						Expect(created.Data).To(Equal(configMap(ns, "faulty").Data))
						Expect(audited(ctx, "create", ns, "faulty")).To(HaveKeyWithValue(failedOpen, "faulty.example.com"))
					})
				}

				It("differ from a denial, which rejects the request under failurePolicy Ignore too", func(ctx context.Context) {
					ns := newNamespace(ctx)
					denial := fault{handle: func(context.Context, <-chan struct{}) error { return webhook.Deny("not here") }}
					denial.install(ctx, kind, version, ns, admissionregistrationv1.Ignore)
					_, err := createConfigMap(ctx, ns, "faulty")
					Expect(err).To(MatchError(`admission webhook "faulty.example.com" denied the request: not here`))
					Expect(apierrors.IsForbidden(err)).To(BeTrue())
					Expect(audited(ctx, "create", ns, "faulty")).NotTo(HaveKey(failedOpen))
				})

				It("differ from an API error with a 4xx code, which rejects the request under failurePolicy Ignore too", func(ctx context.Context) {
					ns := newNamespace(ctx)
					denial := fault{handle: func(context.Context, <-chan struct{}) error {
						return fmt.Errorf("looking for the owner: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "teams"}, "red"))
					}}
					denial.install(ctx, kind, version, ns, admissionregistrationv1.Ignore)
					_, err := createConfigMap(ctx, ns, "faulty")
					Expect(err).To(MatchError(`admission webhook "faulty.example.com" denied the request: looking for the owner: teams "red" not found`))
					Expect(apierrors.IsNotFound(err)).To(BeTrue())
				})
			})
		}
	}

	It("are printed by kubectl in one sentence", func(ctx context.Context) {
		ns := newNamespace(ctx)
		plain := fault{handle: func(context.Context, <-chan struct{}) error { return errors.New("the registry cannot be reached") }}
		plain.install(ctx, validating, "v1", ns, admissionregistrationv1.Fail)
		stdout, stderr, err := kubectl(ctx, manifest("v1", "ConfigMap", configMap(ns, "faulty")), "create", "-f", "-")
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(BeEmpty())
		Expect(stderr).To(Equal(`Error from server (InternalError): error when creating "STDIN": Internal error occurred: ` +
			`failed calling webhook "faulty.example.com": failed to call webhook: the registry cannot be reached` + "\n"))
	})
})
