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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/certs"
)

var _ = Describe("Install beside other field managers", func() {
	var i *installation
	BeforeEach(func(ctx context.Context) { i = newInstallation(ctx) })

	bundles := func(ctx context.Context) map[string]int {
		lengths := map[string]int{}
		for _, w := range i.validating(ctx).Webhooks {
			lengths[w.Name] = len(w.ClientConfig.CABundle)
		}
		return lengths
	}

	It("keeps caBundles that another manager injects before and after it", func(ctx context.Context) {
		i.o.Configuration.CABundle = nil
		installer := i.serving(i.denies("one.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(bundles(ctx)).To(Equal(map[string]int{"one.example.com": 0, i.marker(): 0}))
		Expect(installer.Wait(within(ctx, time.Second))).To(MatchError(ContainSubstring(
			"(the caBundle does not trust the serving certificate)")))
		i.inject(ctx, validatingKind, "one.example.com", i.marker())
		Expect(installer.Wait(within(ctx, patience))).To(Succeed())
		Expect(installer.Apply(ctx)).To(Succeed())
		with := map[string]int{"one.example.com": len(ca.Bundle), i.marker(): len(ca.Bundle)}
		Expect(bundles(ctx)).To(Equal(with))

		By("adding a webhook")
		second := i.serving(i.denies("one.example.com"), i.denies("two.example.com"))
		Expect(second.Apply(ctx)).To(Succeed())
		with["two.example.com"] = 0
		Expect(bundles(ctx)).To(Equal(with))
		i.inject(ctx, validatingKind, "one.example.com", "two.example.com", i.marker())

		By("removing a webhook whose caBundle belongs to the other manager")
		third := i.serving(i.denies("two.example.com"))
		Expect(third.Apply(ctx)).To(Succeed())
		delete(with, "one.example.com")
		with["two.example.com"] = len(ca.Bundle)
		Expect(bundles(ctx)).To(Equal(with))
		Expect(third.Wait(within(ctx, patience))).To(Succeed())

		By("removing the installation")
		Expect(third.Remove(within(ctx, patience))).To(Succeed())
	})

	It("does not promote a new webhook before its caBundle is injected", func(ctx context.Context) {
		i.o.Configuration.CABundle, i.o.FailOpenFirst = nil, true
		first := i.serving(i.denies("one.example.com"))
		Expect(first.Apply(ctx)).To(Succeed())
		i.inject(ctx, validatingKind, "one.example.com", i.marker())
		Expect(first.Promote(within(ctx, patience))).To(Succeed())

		second := i.serving(i.denies("one.example.com"), i.denies("two.example.com"))
		Expect(second.Promote(within(ctx, 3*time.Second))).To(MatchError(
			"waiting to apply the failure policies: context deadline exceeded; last seen: ValidatingWebhookConfiguration " + i.name + ": webhooks do not have the caBundle of the marker yet, so calls to them would fail: two.example.com"))
		Expect(i.policies(ctx)).To(Equal(policies("one.example.com", "Fail", "two.example.com", "Ignore")))
		i.inject(ctx, validatingKind, "one.example.com", "two.example.com", i.marker())
		Expect(second.Promote(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("one.example.com", "Fail", "two.example.com", "Fail")))
	})

	It("keeps labels, annotations, webhooks and caBundles of an existing configuration", func(ctx context.Context) {
		i.o.Configuration.CABundle = nil
		i.apply(ctx, "helm", validatingKind, map[string]any{
			"metadata": map[string]any{"name": i.name, "labels": map[string]string{"chart": "hooks"}, "annotations": map[string]string{"note": "ours"}},
			"webhooks": []any{map[string]any{
				"name": "theirs.example.com", "clientConfig": map[string]any{"url": "https://127.0.0.1:1"}, "failurePolicy": "Ignore",
				"sideEffects": "None", "admissionReviewVersions": []string{"v1"},
			}},
		})
		i.o.Configuration.Labels = map[string]string{"team": "red"}
		installer := i.serving(i.denies("one.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		c := i.validating(ctx)
		Expect(c.Labels).To(Equal(map[string]string{"chart": "hooks", "team": "red"}))
		Expect(c.Annotations).To(Equal(map[string]string{"note": "ours", "install.admitkit.dev/owner": i.name + "/" + i.o.Configuration.URL}))
		Expect(c.Webhooks).To(HaveLen(3))
		i.o.Configuration.Labels = nil
		Expect(i.serving(i.denies("one.example.com")).Apply(ctx)).To(Succeed())
		Expect(i.validating(ctx).Labels).To(Equal(map[string]string{"chart": "hooks"}))

		By("removing only what Install applied")
		i.inject(ctx, validatingKind, "one.example.com", i.marker())
		Expect(installer.Wait(within(ctx, patience))).To(Succeed())
		Expect(installer.Remove(within(ctx, patience))).To(Succeed())
		c = i.validating(ctx)
		Expect(c.Annotations).To(Equal(map[string]string{"note": "ours"}))
		Expect(c.Webhooks).To(HaveLen(1))
		Expect(c.Webhooks[0].Name).To(Equal("theirs.example.com"))
	})

	It("leaves a configuration of another installation with the same name alone, unless it is forced", func(ctx context.Context) {
		Expect(i.serving(i.denies("one.example.com")).Apply(ctx)).To(Succeed())
		before := i.validating(ctx)
		i.o.Configuration.Namespace = i.target
		other := i.of(i.denies("two.example.com"))
		for _, step := range []func(context.Context) error{other.Apply, other.Promote, other.Remove} {
			Expect(step(ctx)).To(MatchError("ValidatingWebhookConfiguration " + i.name + " was installed for " + i.o.Configuration.URL + ", in namespace " + i.name + ", but this program is for " + i.o.Configuration.URL + ", in namespace " + i.target +
				": choose another Configuration.Name, or set Force if one replaces the other"))
		}
		Expect(i.validating(ctx)).To(Equal(before))
		i.o.Force = true
		Expect(i.of(i.denies("two.example.com")).Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("two.example.com", "Fail")))
	})

	It("leaves an installation with a Service alone when the program runs with a URL, but can remove it", func(ctx context.Context) {
		url := i.o.Configuration.URL
		i.o.Configuration.URL, i.o.Configuration.Service = "", &admissionregistrationv1.ServiceReference{Namespace: i.name, Name: "hooks"}
		Expect(i.of(i.denies("one.example.com")).Apply(ctx)).To(Succeed())
		before := i.validating(ctx)
		i.o.Configuration.URL, i.o.Configuration.Service, i.o.Configuration.Namespace = url, nil, i.name
		i.o.Configuration.CABundle = nil
		developer := i.serving(i.denies("two.example.com"))
		for _, step := range []func(context.Context) error{developer.Apply, developer.Promote} {
			Expect(step(ctx)).To(MatchError(ContainSubstring("was installed for Service " + i.name + "/hooks, but this program is for " + url + ", in namespace " + i.name)))
		}

		By("a certificate source does not write its caBundle either")
		source, err := certs.NewSelfManaged(certs.Options{
			Config: config, Namespace: i.name, Secret: "hooks-ca", IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			Targets: developer.Targets(), Settle: -1, Interval: 20 * time.Millisecond, Logger: logr.New(ginkgoSink{}),
		})
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- source.Start(running) }()
		Eventually(func() error { return source.Status().NotReady }, "10s").Should(MatchError(ContainSubstring("belongs to another installation, so its caBundle is not changed")))
		stop()
		Eventually(ended, "10s").Should(Receive(Succeed()))
		Expect(i.validating(ctx)).To(Equal(before))

		Expect(developer.Remove(within(ctx, patience))).To(Succeed())
		Expect(i.there(ctx)).To(BeEmpty())
	})

	It("leaves conflicting fields alone and names their managers, unless it is forced", func(ctx context.Context) {
		installer := i.serving(i.denies("one.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		i.apply(ctx, "helm", validatingKind, map[string]any{"webhooks": []any{map[string]any{
			"name": "one.example.com", "timeoutSeconds": 17, "failurePolicy": "Ignore",
		}}})
		Expect(installer.Apply(ctx)).To(MatchError(And(
			HavePrefix("cannot apply ValidatingWebhookConfiguration "+i.name+": other field managers own some of its fields: "),
			ContainSubstring(`.webhooks[name="one.example.com"].failurePolicy (conflict with "helm"), .webhooks[name="one.example.com"].timeoutSeconds (conflict with "helm"); remove the fields from their manifests, or set Force: `),
		)))
		Expect(i.policies(ctx)).To(Equal(policies("one.example.com", "Ignore")))
		i.o.Force = true
		Expect(i.of(i.denies("one.example.com")).Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("one.example.com", "Fail")))
	})

	It("owns only the fields that it has applied", func(ctx context.Context) {
		i.o.Configuration.CABundle = nil
		Expect(i.serving(i.denies("one.example.com")).Apply(ctx)).To(Succeed())
		i.inject(ctx, validatingKind, "one.example.com", i.marker())
		for _, managed := range i.validating(ctx).ManagedFields {
			Expect(managed.Operation).To(Equal(metav1.ManagedFieldsOperationApply))
			if managed.Manager == "admitkit-install" {
				Expect(string(managed.FieldsV1.GetRawBytes())).NotTo(ContainSubstring("caBundle"))
			} else {
				Expect(managed.Manager).To(Equal("admitkit-certs"))
			}
		}
	})
})
