// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An installation is one webhook of a spec: its namespace is where it runs, and what its hooks
// deny is in another.
type installation struct {
	o      installing.Options
	target string // the namespace that its hooks look at
}

func newInstallation(ctx context.Context) installation {
	GinkgoHelper()
	ns := newNamespace(ctx)
	i := installation{target: newNamespace(ctx), o: installing.Options{
		Config: config, Logger: logr.New(ginkgoSink{}), Confirmations: 2, Interval: 10 * time.Millisecond,
		Configuration: webhook.ConfigurationOptions{Name: ns, Namespace: ns, CABundle: ca.Bundle},
	}}
	DeferCleanup(func(ctx context.Context) {
		api := clients.AdmissionregistrationV1()
		Expect(api.MutatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + ns})).To(Succeed())
		Expect(api.ValidatingWebhookConfigurations().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + ns})).To(Succeed())
	})
	return i
}

// serving returns an installer of the hooks, which are served.
func (i installation) serving(hooks ...*webhook.Hook) *installing.Installer {
	GinkgoHelper()
	tlsConfig, err := ca.Serving("127.0.0.1")
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	i.o.Configuration.URL = "https://" + listener.Addr().String()
	installer, err := installing.New(i.o, hooks...)
	Expect(err).NotTo(HaveOccurred())
	serveOn(listener, tlsConfig, installer.Hooks()...)
	return installer
}

// denies returns a validating hook that denies every Secret of the target.
func (i installation) denies(name string) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: name, NamespaceSelector: only(i.target), Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
	}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error { return webhook.Deny(name + " says no") })
}

// labels returns a mutating hook that labels every Secret of the target.
func (i installation) labels(name string) *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: name, NamespaceSelector: only(i.target), Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
	}, func(_ context.Context, req *webhook.Request[corev1.Secret]) error {
		metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen-by", name)
		return nil
	})
}

// try creates a Secret in the target, without storing it.
func (i installation) try(ctx context.Context) (*corev1.Secret, error) {
	return clients.CoreV1().Secrets(i.target).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func (i installation) validating(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	c, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, i.o.Configuration.Name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// policies returns the failurePolicy of each webhook.
func (i installation) policies(ctx context.Context) map[string]admissionregistrationv1.FailurePolicyType {
	GinkgoHelper()
	policies := map[string]admissionregistrationv1.FailurePolicyType{}
	for _, w := range i.validating(ctx).Webhooks {
		policies[w.Name] = *w.FailurePolicy
	}
	delete(policies, "marker."+i.o.Configuration.Name+".admitkit.dev")
	return policies
}

var _ = Describe("Install", func() {
	var i installation
	BeforeEach(func(ctx context.Context) { i = newInstallation(ctx) })

	It("applies the configurations, and waits until they are enforced", func(ctx context.Context) {
		installer := i.serving(i.labels("labels.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(ctx)).To(Succeed())
		secret, err := i.try(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(secret.Labels).To(Equal(map[string]string{"seen-by": "labels.example.com"}))

		both := i.serving(i.labels("labels.example.com"), i.denies("denies.example.com"))
		Expect(both.Apply(ctx)).To(Succeed())
		Expect(both.Wait(ctx)).To(Succeed())
		_, err = i.try(ctx)
		Expect(err).To(MatchError(ContainSubstring("denies.example.com says no")))
	})
})
