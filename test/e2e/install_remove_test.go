// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	installing "github.com/admitkit/admitkit/pkg/install"
)

var _ = Describe("removing an installation", func() {
	var (
		i         *installation
		installer *installing.Installer
	)
	BeforeEach(func(ctx context.Context) {
		i = newInstallation(ctx)
		installer = i.serving(i.denies("denies.example.com"), i.labels("labels.example.com"))
		Expect(installer.Apply(ctx)).To(Succeed())
		Expect(installer.Wait(within(ctx, patience))).To(Succeed())
	})

	It("removes the webhooks of a configuration that has a finalizer", func(ctx context.Context) {
		set := func(finalizers string) error {
			_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, i.name, types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
			return err
		}
		Expect(set(`["example.com/audit"]`)).To(Succeed())
		Expect(installer.Remove(within(ctx, patience))).To(Succeed())
		Expect(i.validating(ctx).Webhooks).To(BeEmpty())
		Expect(i.there(ctx)).To(ConsistOf(validatingKind))
		Expect(i.try(ctx)).To(BeEmpty())
		Expect(set("null")).To(Succeed())
		Expect(i.there(ctx)).To(BeEmpty())
	})

	It("removes the rest after its namespace was deleted", func(ctx context.Context) {
		Expect(clients.CoreV1().Namespaces().Delete(ctx, i.name, metav1.DeleteOptions{})).To(Succeed())
		for range 2 {
			Expect(installer.Remove(within(ctx, patience))).To(Succeed())
			Expect(i.there(ctx)).To(BeEmpty())
			Expect(installer.Status().Phase).To(Equal(installing.Removed))
			Expect(installer.Status().Err).NotTo(HaveOccurred())
		}
	})
})
