// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// newBundle returns a CA certificate that has signed nothing. It panics on an error, because Ginkgo calls it
// while it builds the tree of specs.
func newBundle() []byte {
	ca, err := devcert.NewCA()
	if err != nil {
		panic(err)
	}
	return ca.Bundle
}

var onTrial = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

func admitAll(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error { return nil }

// judgeMutating returns the API server's error for a configuration.
func judgeMutating(ctx context.Context, name string, webhooks ...admissionregistrationv1.MutatingWebhook) error {
	_, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks,
	}, onTrial)
	return err
}

func judgeValidating(ctx context.Context, name string, webhooks ...admissionregistrationv1.ValidatingWebhook) error {
	_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks,
	}, onTrial)
	return err
}

// judgeOutput returns the API server's error for the output of Configurations.
func judgeOutput(ctx context.Context, m *admissionregistrationv1.MutatingWebhookConfiguration, v *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	var errs []error
	if m != nil {
		_, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, m, onTrial)
		errs = append(errs, err)
	}
	if v != nil {
		_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, v, onTrial)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// expectComparison passes a registration to admitkit, and checks that admitkit and the API server accept or reject it
// as want says. The argument theirs is the API server's error for the registration, or nil.
func expectComparison(ctx context.Context, want comparison, theirs error, o webhook.ConfigurationOptions, hooks ...*webhook.Hook) {
	GinkgoHelper()
	m, v, ours := webhook.Configurations(o, hooks...)
	switch want {
	case accepted, stricter:
		Expect(theirs).NotTo(HaveOccurred())
	default:
		Expect(apierrors.IsInvalid(theirs)).To(BeTrue(), "%v", theirs)
	}
	switch want {
	case accepted, corrected:
		Expect(ours).NotTo(HaveOccurred())
		Expect(judgeOutput(ctx, m, v)).To(Succeed())
	case left:
		Expect(ours).NotTo(HaveOccurred())
	default:
		Expect(ours).To(HaveOccurred())
		Expect(m).To(BeNil())
		Expect(v).To(BeNil())
	}
	if want == refused {
		expectSameFields(ours, theirs)
	}
}

// expectSameFields checks that our error names the fields in the API server's error.
func expectSameFields(ours, theirs error) {
	GinkgoHelper()
	var status apierrors.APIStatus
	Expect(errors.As(theirs, &status)).To(BeTrue())
	for _, cause := range status.Status().Details.Causes {
		_, at, _ := strings.Cut(cause.Field, ".")
		Expect(ours.Error()).To(ContainSubstring(at), "the API server says %s: %s", cause.Field, cause.Message)
	}
}

var _ = Describe("registrations", func() {
	options := webhook.ConfigurationOptions{Name: "judged"}

	for _, r := range rules {
		It("of a validating hook "+string(r.want)+": "+r.name, func(ctx context.Context) {
			w := goodRegistration()
			r.edit(&w)
			expectComparison(ctx, r.want, judgeValidating(ctx, "judged", w), options, webhook.Validating(w, admitAll))
		})

		It("of a mutating hook "+string(r.want)+": "+r.name, func(ctx context.Context) {
			w := goodRegistration()
			r.edit(&w)
			expectComparison(ctx, r.want, judgeMutating(ctx, "judged", asMutating(w)), options, webhook.Mutating(asMutating(w), admitAll))
		})
	}

	for _, r := range []struct {
		want   comparison
		policy admissionregistrationv1.ReinvocationPolicyType
	}{
		{accepted, "Never"}, {accepted, "IfNeeded"}, {refused, "Always"}, {refused, ""},
	} {
		It("of a mutating hook "+string(r.want)+`: reinvocationPolicy "`+string(r.policy)+`"`, func(ctx context.Context) {
			w := asMutating(goodRegistration())
			w.ReinvocationPolicy = &r.policy
			expectComparison(ctx, r.want, judgeMutating(ctx, "judged", w), options, webhook.Mutating(w, admitAll))
		})
	}

	for _, r := range []struct {
		name          string
		want          comparison
		configuration string // name of the configuration
	}{
		{"a name of one part", accepted, "judged"},
		{"a name of several parts", accepted, "0.judged.example.com"},
		{"no name", refused, ""},
		{"a name in upper case", refused, "Judged"},
		{"a name with a slash", refused, "judged/x"},
		{"a name of 253 characters", accepted, strings.Repeat("a", 253)},
		{"a name of 254 characters", refused, strings.Repeat("a", 254)},
	} {
		It("in one configuration "+string(r.want)+": "+r.name, func(ctx context.Context) {
			w, o := goodRegistration(), options
			o.Name = r.configuration
			m, v, ours := webhook.Configurations(o, webhook.Mutating(asMutating(w), admitAll))
			Expect(judgeMutating(ctx, r.configuration, asMutating(w)) == nil).To(Equal(r.want == accepted))
			Expect(judgeValidating(ctx, r.configuration, w) == nil).To(Equal(r.want == accepted))
			Expect(ours == nil).To(Equal(r.want == accepted), "%v", ours)
			Expect(judgeOutput(ctx, m, v)).To(Succeed())
		})
	}

	It("in one configuration "+string(inOtherWords)+": two hooks with the same name", func(ctx context.Context) {
		one, two := goodRegistration(), goodRegistration()
		two.ClientConfig.URL = new("https://127.0.0.1:9443/other")
		expectComparison(ctx, inOtherWords, judgeMutating(ctx, "judged", asMutating(one), asMutating(two)), options,
			webhook.Mutating(asMutating(one), admitAll), webhook.Mutating(asMutating(two), admitAll))
		expectComparison(ctx, inOtherWords, judgeValidating(ctx, "judged", one, two), options,
			webhook.Validating(one, admitAll), webhook.Validating(two, admitAll))
	})

	It("in one configuration "+string(accepted)+": a mutating and a validating hook with the same name", func(ctx context.Context) {
		one, two := goodRegistration(), goodRegistration()
		two.ClientConfig.URL = new("https://127.0.0.1:9443/other")
		m, v, err := webhook.Configurations(options, webhook.Mutating(asMutating(one), admitAll), webhook.Validating(two, admitAll))
		Expect(err).NotTo(HaveOccurred())
		Expect(judgeOutput(ctx, m, v)).To(Succeed())
	})

	It("with many errors are refused with all errors at once", func(ctx context.Context) {
		w := goodRegistration()
		w.Name = "judged"
		for _, edit := range []change{
			operations("PATCH"), groups(), versions(""), resources(""), scope("none"), failurePolicy("Warn"), matchPolicy("exact"),
			sideEffects("Some"), timeoutSeconds(31), selectors(metav1.LabelSelectorRequirement{Operator: "Gt"}), reviews("v2"), conditions("a b", " "),
			atURL("http://user@host?a=b#c"),
		} {
			edit(&w)
		}
		theirs := judgeValidating(ctx, "judged", w)
		var status apierrors.APIStatus
		Expect(errors.As(theirs, &status)).To(BeTrue(), "%v", theirs)
		Expect(len(status.Status().Details.Causes)).To(BeNumerically(">=", 18))
		expectSameFields(webhook.Validating(w, admitAll).Check(), theirs)
	})
})

// The options of Configurations are not part of a registration. Configurations must report an invalid option itself,
// instead of returning objects that the API server would reject.
var _ = Describe("options of configurations that the API server would refuse", func() {
	for _, r := range []struct {
		name string
		edit func(*webhook.ConfigurationOptions)
	}{
		{"a URL without TLS", func(o *webhook.ConfigurationOptions) { o.URL = "http://127.0.0.1:9443" }},
		{"a URL with a query", func(o *webhook.ConfigurationOptions) { o.URL = "https://127.0.0.1:9443?a=b" }},
		{"a service at port 65536", func(o *webhook.ConfigurationOptions) {
			o.URL, o.Service = "", &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hooks", Port: new(int32(65536))}
		}},
		{"a service at port 0", func(o *webhook.ConfigurationOptions) {
			o.URL, o.Service = "", &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hooks", Port: new(int32(0))}
		}},
		{"a service without a name", func(o *webhook.ConfigurationOptions) {
			o.URL, o.Service = "", &admissionregistrationv1.ServiceReference{Namespace: "default"}
		}},
		{"a namespace that cannot be", func(o *webhook.ConfigurationOptions) { o.Namespace = "red and blue" }},
		{"a service in a namespace that cannot be", func(o *webhook.ConfigurationOptions) {
			o.URL, o.Service = "", &admissionregistrationv1.ServiceReference{Namespace: "red and blue", Name: "hooks"}
		}},
		{"a label that is none", func(o *webhook.ConfigurationOptions) { o.Labels = map[string]string{"owner": "red and blue"} }},
		{"an annotation whose key is none", func(o *webhook.ConfigurationOptions) { o.Annotations = map[string]string{"owner of this": "red"} }},
	} {
		It("are refused: "+r.name, func(ctx context.Context) {
			o := webhook.ConfigurationOptions{Name: "judged", URL: "https://127.0.0.1:9443"}
			r.edit(&o)
			w := goodRegistration()
			w.ClientConfig = admissionregistrationv1.WebhookClientConfig{}
			for _, hook := range []*webhook.Hook{webhook.Mutating(asMutating(w), admitAll), webhook.Validating(w, admitAll)} {
				m, v, err := webhook.Configurations(o, hook)
				Expect(judgeOutput(ctx, m, v)).To(Succeed(), "the API server must not be the first to say so")
				Expect(err).To(HaveOccurred())
			}
		})
	}
})

var _ = Describe("configurations", func() {
	// bare has only the required fields. full has all fields, with values that differ from the defaults.
	bare := admissionregistrationv1.ValidatingWebhook{Name: "bare.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))}
	full := admissionregistrationv1.ValidatingWebhook{
		Name: "full.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service:  &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "own", Port: new(int32(8443)), Path: new("/own/path")},
			CABundle: newBundle(),
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"UPDATE", "DELETE"},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"apps", ""}, APIVersions: []string{"v1", "v1beta1"}, Resources: []string{"pods", "deployments/scale"},
				Scope: new(admissionregistrationv1.NamespacedScope),
			},
		}},
		FailurePolicy:           new(admissionregistrationv1.Ignore),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		NamespaceSelector:       only("default"),
		ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/owner": "red"}},
		SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          new(int32(7)),
		AdmissionReviewVersions: []string{"v1beta1", "v1"},
		MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "example.com/a", Expression: "object == null"}},
	}
	fullMutating := asMutating(full)
	fullMutating.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)

	for _, o := range []webhook.ConfigurationOptions{
		{Name: "by-url", URL: "https://127.0.0.1:9443/base"},
		{
			Name: "by-service", Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hooks"}, CABundle: newBundle(),
			Namespace: "webhooks", Labels: map[string]string{"example.com/owner": "red"}, Annotations: map[string]string{"example.com/note": "any text"},
		},
	} {
		It("are stored by the API server without a change or a warning: "+o.Name, func(ctx context.Context) {
			warned := &warningLog{}
			listening := rest.CopyConfig(config)
			listening.WarningHandler = warned
			client, err := kubernetes.NewForConfig(listening)
			Expect(err).NotTo(HaveOccurred())
			m, v, err := webhook.Configurations(o,
				webhook.Mutating(asMutating(bare), admitAll), webhook.Mutating(fullMutating, admitAll),
				webhook.Validating(bare, admitAll), webhook.Validating(withPath(full, "/own/validating/path"), admitAll))
			Expect(err).NotTo(HaveOccurred())

			gotM, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, m, onTrial)
			Expect(err).NotTo(HaveOccurred())
			Expect(gotM.Webhooks).To(Equal(m.Webhooks))
			gotV, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, v, onTrial)
			Expect(err).NotTo(HaveOccurred())
			Expect(gotV.Webhooks).To(Equal(v.Webhooks))
			for _, got := range []metav1.Object{gotM, gotV} {
				Expect(got.GetName()).To(Equal(o.Name))
				Expect(got.GetLabels()).To(Equal(o.Labels))
				Expect(got.GetAnnotations()).To(Equal(o.Annotations))
			}
			Expect(warned.texts).To(BeEmpty())
		})
	}
})

// withPath returns the registration with another service path.
func withPath(w admissionregistrationv1.ValidatingWebhook, path string) admissionregistrationv1.ValidatingWebhook {
	w = *w.DeepCopy()
	w.ClientConfig.Service.Path = &path
	return w
}
