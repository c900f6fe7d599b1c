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

// A countOf is a projection with numbers as data. ConfigMaps do not fit it, because their data are
// strings.
type countOf struct {
	Data map[string]int `json:"data"`
}

// A fault is one way in which a call fails.
type fault struct {
	of string // what failed: the name of the spec
	// handle fails, unless another of the fields makes the call fail. It is called for the
	// object "faulty" only.
	handle func(ctx context.Context, released <-chan struct{}) error
	hook   func(kind string, r admissionregistrationv1.ValidatingWebhook) *webhook.Hook
	url    string
	ca     func() []byte
	// message is what the user reads after `failed calling webhook "<name>": failed to call webhook: `.
	message OmegaMatcher
}

var faults = []fault{
	{
		of: "a handler that stops at the deadline",
		handle: func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return fmt.Errorf("asking the registry: %w", ctx.Err())
		},
		message: Equal("the handler did not decide within 900ms"),
	},
	{
		of: "a handler that overlooks the deadline",
		handle: func(_ context.Context, released <-chan struct{}) error {
			<-released
			return nil
		},
		message: Equal("the handler did not decide within 900ms"),
	},
	{
		of:      "a panic",
		handle:  func(context.Context, <-chan struct{}) error { panic("index out of range") },
		message: Equal("the handler panicked: index out of range"),
	},
	{
		of:      "a plain error",
		handle:  func(context.Context, <-chan struct{}) error { return errors.New("the registry cannot be reached") },
		message: Equal("the registry cannot be reached"),
	},
	{
		of: "an API error of 5xx that the handler got and returned",
		handle: func(context.Context, <-chan struct{}) error {
			return fmt.Errorf("reading the policy: %w", apierrors.NewServerTimeout(schema.GroupResource{Resource: "policies"}, "get", 0))
		},
		message: Equal("reading the policy: The get operation against policies could not be completed at this time, please try again."),
	},
	{
		of: "an object that does not decode into the type of the hook",
		hook: func(kind string, r admissionregistrationv1.ValidatingWebhook) *webhook.Hook {
			return hookOf(kind, r, func(context.Context, *webhook.Request[countOf]) error { return nil })
		},
		message: Equal("cannot decode object as e2e.countOf: data.replicas: want int, got string"),
	},
	{
		of: "an object of a kind that the hook does not handle",
		hook: func(kind string, r admissionregistrationv1.ValidatingWebhook) *webhook.Hook {
			return hookOf(kind, r, admitAll).WithKinds(metav1.GroupVersionKind{Group: "*", Version: "v1", Kind: "Secret"})
		},
		message: Equal("the hook handles kind Secret (v1), not kind ConfigMap (v1)"),
	},
	{
		of:      "a refused connection",
		url:     "https://127.0.0.1:1",
		message: Equal(`Post "https://127.0.0.1:1/hook?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused`),
	},
	{
		of: "a certificate that the caBundle does not vouch for",
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
		// The timeout is short; the connection must not take its share of it.
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
					It("reject the request under failurePolicy Fail, and say why: "+f.of, func(ctx context.Context) {
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

					It("admit the object as it was under failurePolicy Ignore, on the record: "+f.of, func(ctx context.Context) {
						ns := newNamespace(ctx)
						f.install(ctx, kind, version, ns, admissionregistrationv1.Ignore)
						created, err := createConfigMap(ctx, ns, "faulty")
						Expect(err).NotTo(HaveOccurred())
						Expect(created.Data).To(Equal(configMap(ns, "faulty").Data))
						Expect(audited(ctx, "create", ns, "faulty")).To(HaveKeyWithValue(failedOpen, "faulty.example.com"))
					})
				}

				It("are not what a denial is: it rejects under failurePolicy Ignore too", func(ctx context.Context) {
					ns := newNamespace(ctx)
					denial := fault{handle: func(context.Context, <-chan struct{}) error { return webhook.Deny("not here") }}
					denial.install(ctx, kind, version, ns, admissionregistrationv1.Ignore)
					_, err := createConfigMap(ctx, ns, "faulty")
					Expect(err).To(MatchError(`admission webhook "faulty.example.com" denied the request: not here`))
					Expect(apierrors.IsForbidden(err)).To(BeTrue())
					Expect(audited(ctx, "create", ns, "faulty")).NotTo(HaveKey(failedOpen))
				})

				It("are not what a denial is: an API error of 4xx rejects under failurePolicy Ignore too", func(ctx context.Context) {
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

	It("are shown by kubectl in one sentence", func(ctx context.Context) {
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
