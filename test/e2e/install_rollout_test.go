// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	installing "github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// newDeployment creates a Deployment of two replicas. No Pods are started.
func (i *installation) newDeployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	labels := map[string]string{"app": "hooks"}
	d, err := clients.AppsV1().Deployments(i.name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "").Spec},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

// ready sets the status of the Deployment: all replicas are updated and ready.
func (i *installation) ready(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	_, err := clients.AppsV1().Deployments(i.name).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func policies(ofNames ...string) map[string]string {
	policies := map[string]string{}
	for n := 0; n < len(ofNames); n += 2 {
		policies[ofNames[n]] = ofNames[n+1]
	}
	return policies
}

var _ = Describe("Install with FailOpenFirst", func() {
	var i *installation
	BeforeEach(func(ctx context.Context) {
		i = newInstallation(ctx)
		i.o.FailOpenFirst = true
	})

	It("fails open when it is applied, and closed when it is promoted", func(ctx context.Context) {
		installer := i.of(i.denies("denies.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Ignore")))
		Expect(installer.Wait(within(ctx, 500*time.Millisecond))).To(MatchError(ContainSubstring("cannot call the webhook")))
		_, err := i.try(ctx)
		Expect(err).NotTo(HaveOccurred(), "a webhook that is not served admits the object")

		Expect(installer.Promote(within(ctx, 500*time.Millisecond))).To(MatchError(ContainSubstring("cannot call the webhook")))
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Ignore")))

		installer = i.serving(i.denies("denies.example.com"))
		Expect(installer.Promote(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail")))
		i.served.Store(nil)
		_, err = i.try(ctx)
		Expect(err).To(MatchError(ContainSubstring(`failed calling webhook "denies.example.com"`)))
	})

	It("fails open until every replica of the Deployment is ready and Ready returns nil", func(ctx context.Context) {
		i.o.Deployment = "hooks"
		var asked atomic.Int64
		i.o.Ready = func(context.Context) error {
			if asked.Add(1) == 1 {
				return errors.New("the database is not ready")
			}
			return nil
		}
		installer := i.serving(i.denies("denies.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Promote(within(ctx, 200*time.Millisecond))).To(MatchError(
			`waiting until every replica is ready: context deadline exceeded; last seen: cannot read Deployment ` + i.name + `/hooks: deployments.apps "hooks" not found`))
		d := i.newDeployment(ctx)
		Expect(installer.Promote(within(ctx, 200*time.Millisecond))).To(MatchError(ContainSubstring("its latest change has not been observed yet")))
		Expect(asked.Load()).To(BeZero())
		promoted := make(chan error, 1)
		go func() { promoted <- installer.Promote(within(ctx, patience)) }()
		i.ready(ctx, d)
		Expect(<-promoted).To(Succeed())
		Expect(asked.Load()).To(BeEquivalentTo(2))
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail")))
	})

	It("fails open with new webhooks only", func(ctx context.Context) {
		first := i.serving(i.denies("one.example.com"), i.denies("two.example.com"))
		Expect(first.Promote(within(ctx, patience))).To(Succeed())

		second := i.serving(i.denies("two.example.com"), i.denies("three.example.com"))
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("one.example.com", "Ignore", "two.example.com", "Fail", "three.example.com", "Ignore")))
		Expect(second.Wait(within(ctx, patience))).To(Succeed())
		Expect(second.Promote(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("two.example.com", "Fail", "three.example.com", "Fail")))
	})

	It("keeps a renamed webhook until its new name is enforced, also with injected caBundles", func(ctx context.Context) {
		i.o.Configuration.CABundle = nil
		first := i.serving(i.denies("old.example.com"))
		Expect(first.Apply(ctx)).To(Succeed())
		i.inject(ctx, validatingKind, "old.example.com", i.marker())
		Expect(first.Promote(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("old.example.com", "Fail")))

		second := i.of(i.denies("new.example.com"))
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("old.example.com", "Ignore", "new.example.com", "Ignore")))
		i.inject(ctx, validatingKind, "old.example.com", "new.example.com", i.marker())
		Eventually(func() error {
			_, err := i.try(ctx)
			return err
		}, "10s", "10ms").Should(MatchError(ContainSubstring("old.example.com says no")), "the old program still serves its hook")
		i.served.Store(newMux(second.Hooks()...))
		Expect(second.Promote(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("new.example.com", "Fail")))
	})

	It("stays promoted when another replica applies the same version later", func(ctx context.Context) {
		hooks := []*webhook.Hook{i.denies("one.example.com"), i.labels("two.example.com")}
		first, second := i.serving(hooks...), i.of(hooks...)
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(first.Promote(within(ctx, patience))).To(Succeed())
		Expect(second.Wait(within(ctx, patience))).To(Succeed(), "the webhooks are already promoted")
		before := i.validating(ctx).ResourceVersion
		Expect(second.Apply(ctx)).To(Succeed())
		Expect(i.validating(ctx).ResourceVersion).To(Equal(before))
	})

	It("does not change a hook with failurePolicy Ignore", func(ctx context.Context) {
		ignored := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "ignored.example.com", FailurePolicy: new(admissionregistrationv1.Ignore), NamespaceSelector: only(i.target),
			Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
		}, func(context.Context, *webhook.Request[corev1.Secret]) error { return nil })
		Expect(i.serving(ignored).Promote(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("ignored.example.com", "Ignore")))
	})

	It("Run returns once the hooks are served and promoted", func(ctx context.Context) {
		installer := i.of(i.denies("denies.example.com"), i.labels("labels.example.com"))
		ran := make(chan error, 1)
		go func() { ran <- installer.Run(within(ctx, patience)) }()
		Eventually(func() []string { return i.there(ctx) }, "10s").Should(Equal([]string{mutatingKind}), "the validating configuration follows when the mutating hooks are served")
		Consistently(ran, "50ms").ShouldNot(Receive())
		i.served.Store(newMux(installer.Hooks()...))
		Eventually(ran, "20s").Should(Receive(Succeed()))
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail")))
	})

	It("Run leaves the configurations as they are when its context ends", func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		ran := make(chan error, 1)
		go func() { ran <- i.of(i.denies("denies.example.com")).Run(ctx) }()
		DeferCleanup(stop)
		Eventually(func() error {
			_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
			return err
		}, "10s").Should(Succeed())
		stop()
		Eventually(ran, "5s").Should(Receive(Succeed()))
		Expect(i.policies(context.WithoutCancel(ctx))).To(Equal(policies("denies.example.com", "Ignore")))
	})
})

var _ = Describe("Install of another version", func() {
	var i *installation
	BeforeEach(func(ctx context.Context) { i = newInstallation(ctx) })

	It("removes a configuration that has no hooks any more", func(ctx context.Context) {
		both := i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
		Expect(both.Apply(ctx)).To(Succeed())
		Expect(both.Wait(within(ctx, patience))).To(Succeed())
		i.inject(ctx, mutatingKind, "labels.example.com", i.marker())
		one := i.serving(i.denies("denies.example.com"))
		Expect(one.Apply(ctx)).To(Succeed())
		Expect(one.Wait(within(ctx, patience))).To(Succeed())
		_, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("with FailOpenFirst keeps such a configuration with failurePolicy Ignore until it is promoted, and then removes it", func(ctx context.Context) {
		i.o.FailOpenFirst = true
		both := i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
		Expect(both.Promote(within(ctx, patience))).To(Succeed())
		i.inject(ctx, validatingKind, "denies.example.com", i.marker())
		one := i.serving(i.labels("labels.example.com"))
		Expect(one.Apply(ctx)).To(Succeed())
		Expect(one.Wait(within(ctx, patience))).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Ignore")))
		Expect(one.Status().Phase).To(Equal(installing.FailingOpen))
		before := i.validating(ctx)
		Expect(one.Apply(ctx)).To(Succeed())
		Expect(i.validating(ctx).ResourceVersion).To(Equal(before.ResourceVersion), "a second call changes nothing")

		again := i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
		Expect(again.Promote(within(ctx, patience))).To(Succeed(), "the hook is there again")
		Expect(i.policies(ctx)).To(Equal(policies("denies.example.com", "Fail")))

		one = i.serving(i.labels("labels.example.com"))
		Expect(one.Promote(within(ctx, patience))).To(Succeed())
		Expect(i.there(ctx)).To(ConsistOf(mutatingKind))
		Expect(one.Status().Phase).To(Equal(installing.Installed))
	})

	It("leaves the configurations to a newer revision", func(ctx context.Context) {
		i.o.Revision = 7
		newer := i.serving(i.denies("newer.example.com"))
		Expect(newer.Apply(ctx)).To(Succeed())
		i.o.Revision = 6
		older := i.of(i.denies("older.example.com"), i.labels("mutating.example.com"))
		Expect(older.Apply(ctx)).To(And(
			MatchError(installing.ErrSuperseded),
			MatchError("ValidatingWebhookConfiguration "+i.name+" has revision 7, but this program has revision 6: superseded by a newer revision"),
		))
		Expect(older.Remove(ctx)).To(MatchError(installing.ErrSuperseded))
		Expect(older.Run(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(HaveKey("newer.example.com"))
		_, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, i.name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the older revision must not create a configuration")
		i.o.Revision = 8
		Expect(i.of(i.denies("newest.example.com")).Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("newest.example.com", "Fail")))
		i.o.Revision = 0
		Expect(i.of(i.denies("any.example.com")).Apply(ctx)).To(Succeed())
		Expect(i.policies(ctx)).To(Equal(policies("any.example.com", "Fail")))
	})

	It("can be applied by many replicas at the same time", func(ctx context.Context) {
		i.o.FailOpenFirst = true
		hooks := []*webhook.Hook{i.denies("one.example.com"), i.labels("two.example.com")}
		i.serving(hooks...)
		const replicas = 8
		done := make(chan error, replicas)
		for range replicas {
			go func() {
				defer GinkgoRecover()
				installer := i.of(hooks...)
				done <- errors.Join(installer.Apply(ctx), installer.Promote(within(ctx, patience)))
			}()
		}
		for range replicas {
			Expect(<-done).To(Succeed())
		}
		Expect(i.policies(ctx)).To(Equal(policies("one.example.com", "Fail")))
	})
})
