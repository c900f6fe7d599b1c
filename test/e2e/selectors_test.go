// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("a namespaceSelector", func() {
	Context("for Namespaces", func() {
		var (
			mark map[string]string
			seen *logbook[corev1.Namespace]
		)
		BeforeEach(func(ctx context.Context) {
			mark = uniqueLabels()
			seen = watch[corev1.Namespace](ctx, admissionregistrationv1.ValidatingWebhook{
				NamespaceSelector: selecting(mark),
				Rules: webhook.Rules(webhook.OnWrite("", "v1", "namespaces"), webhook.OnDelete("", "v1", "namespaces"),
					webhook.OnUpdate("", "v1", "namespaces/status")),
			}, nil)
		})
		// patchLabel sets the label of the spec, or removes it if the value is null.
		patchLabel := func(ctx context.Context, name, value string, subresources ...string) {
			GinkgoHelper()
			body := fmt.Sprintf(`{"metadata":{"labels":{"spec":%s}}}`, value)
			_, err := clients.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
			Expect(err).NotTo(HaveOccurred())
		}

		It("uses the labels of a new Namespace", func(ctx context.Context) {
			createNamespace(ctx, nil)
			Expect(seen.lines()).To(BeEmpty())
			name := createNamespace(ctx, mark).Name
			Expect(seen.lines()).To(Equal([]string{ // the name is generated after the mutating hooks
				"mutating CREATE namespaces / object CreateOptions",
				"validating CREATE namespaces /" + name + " object CreateOptions",
			}))
		})

		It("uses the new labels of an updated Namespace", func(ctx context.Context) {
			name := createNamespace(ctx, nil).Name
			patchLabel(ctx, name, `"`+mark["spec"]+`"`)
			Expect(seen.lines()).To(Equal(eachHook("UPDATE namespaces " + name + "/" + name + " object oldObject UpdateOptions")))

			name = createNamespace(ctx, mark).Name
			seen.clear()
			patchLabel(ctx, name, "null")
			Expect(seen.lines()).To(BeEmpty())
		})

		It("uses the stored labels for a subresource of a Namespace", func(ctx context.Context) {
			patchLabel(ctx, createNamespace(ctx, nil).Name, `"`+mark["spec"]+`"`, "status")
			Expect(seen.lines()).To(BeEmpty())

			name := createNamespace(ctx, mark).Name
			seen.clear()
			patchLabel(ctx, name, "null", "status")
			Expect(seen.lines()).To(Equal(eachHook("UPDATE namespaces/status " + name + "/" + name + " object oldObject UpdateOptions")))
		})

		It("uses the stored labels of a deleted Namespace", func(ctx context.Context) {
			Expect(clients.CoreV1().Namespaces().Delete(ctx, createNamespace(ctx, nil).Name, metav1.DeleteOptions{})).To(Succeed())
			Expect(seen.lines()).To(BeEmpty())

			name := createNamespace(ctx, mark).Name
			seen.clear()
			Expect(clients.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			Expect(seen.lines()).To(Equal(eachHook("DELETE namespaces " + name + "/" + name + " oldObject DeleteOptions")))
		})
	})

	It("uses the labels of the Namespace of an object", func(ctx context.Context) {
		mark := uniqueLabels()
		seen := watch[corev1.ConfigMap](ctx, admissionregistrationv1.ValidatingWebhook{
			NamespaceSelector: selecting(mark), Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		}, nil)
		in, out := createNamespace(ctx, mark).Name, createNamespace(ctx, nil).Name
		for _, ns := range []string{in, out} {
			m := configMap(ns, "one")
			m.Labels = mark // the hook must ignore the labels of the object itself
			_, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, m, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(seen.lines()).To(Equal(eachHook("CREATE configmaps " + in + "/one object CreateOptions")))
	})

	It("matches all other cluster-scoped objects", func(ctx context.Context) {
		mark := uniqueLabels()
		seen := watch[rbacv1.ClusterRole](ctx, admissionregistrationv1.ValidatingWebhook{
			NamespaceSelector: only("nowhere"), ObjectSelector: selecting(mark),
			Rules: webhook.Rules(webhook.OnCreate("rbac.authorization.k8s.io", "v1", "clusterroles")),
		}, nil)
		createClusterRole(ctx, mark)
		Expect(seen.all()).To(HaveLen(2))
	})

	It("excludes kube-system and the namespace of the webhook by default", func(ctx context.Context) {
		mark := uniqueLabels()
		var seen logbook[labelsOnly]
		r := admissionregistrationv1.ValidatingWebhook{
			ObjectSelector: selecting(mark),
			Rules:          webhook.Rules(webhook.OnCreate("", "v1", "configmaps"), webhook.OnUpdate("", "v1", "namespaces")),
		}
		hooks := []*webhook.Hook{seen.hook(mutating, r, nil), seen.hook(validating, r, nil)}
		own, other := newNamespace(ctx), newNamespace(ctx)
		installWith(ctx, webhook.ConfigurationOptions{URL: serve(hooks...), Namespace: own}, hooks...)

		for _, ns := range []string{metav1.NamespaceSystem, own, other} {
			m := configMap(ns, "")
			m.GenerateName, m.Labels = "e2e-", mark
			_, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, m, metav1.CreateOptions{DryRun: dryRun})
			Expect(err).NotTo(HaveOccurred())
			body := fmt.Sprintf(`{"metadata":{"labels":{"spec":"%s"}}}`, mark["spec"])
			_, err = clients.CoreV1().Namespaces().Patch(ctx, ns, types.MergePatchType, []byte(body), metav1.PatchOptions{DryRun: dryRun})
			Expect(err).NotTo(HaveOccurred())
		}
		var namespaces []string
		for _, e := range seen.all() {
			namespaces = append(namespaces, e.hook+" "+e.Resource.Resource+" "+e.Namespace)
		}
		Expect(namespaces).To(Equal(append(eachHook("configmaps "+other), eachHook("namespaces "+other)...)))
	})
})

var _ = Describe("an objectSelector", func() {
	var (
		ns   string
		mark map[string]string
		seen *logbook[corev1.ConfigMap]
	)
	BeforeEach(func(ctx context.Context) {
		ns, mark = newNamespace(ctx), uniqueLabels()
		seen = watch[corev1.ConfigMap](ctx, admissionregistrationv1.ValidatingWebhook{
			ObjectSelector: selecting(mark), NamespaceSelector: only(ns),
			Rules: webhook.Rules(webhook.OnWrite("", "v1", "configmaps"), webhook.OnDelete("", "v1", "configmaps")),
		}, nil)
	})
	create := func(ctx context.Context, name string, labels map[string]string) *corev1.ConfigMap {
		GinkgoHelper()
		m := configMap(ns, name)
		m.Labels = labels
		m, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, m, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		return m
	}
	relabel := func(ctx context.Context, m *corev1.ConfigMap, labels map[string]string) {
		GinkgoHelper()
		m.Labels = labels
		_, err := clients.CoreV1().ConfigMaps(ns).Update(ctx, m, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	It("uses the labels of a new object", func(ctx context.Context) {
		create(ctx, "without", nil)
		create(ctx, "with", mark)
		Expect(seen.lines()).To(Equal(eachHook("CREATE configmaps " + ns + "/with object CreateOptions")))
	})

	It("matches an update that adds the label", func(ctx context.Context) {
		m := create(ctx, "one", nil)
		relabel(ctx, m, mark)
		Expect(seen.lines()).To(Equal(eachHook("UPDATE configmaps " + ns + "/one object oldObject UpdateOptions")))
	})

	It("matches an update that removes the label", func(ctx context.Context) {
		m := create(ctx, "one", mark)
		seen.clear()
		relabel(ctx, m, nil)
		Expect(seen.lines()).To(Equal(eachHook("UPDATE configmaps " + ns + "/one object oldObject UpdateOptions")))
		for _, e := range seen.all() {
			Expect(e.old.Labels).To(Equal(mark))
			Expect(e.object.Labels).To(BeEmpty())
		}
	})

	It("does not match an update if neither object has the label", func(ctx context.Context) {
		relabel(ctx, create(ctx, "one", nil), map[string]string{"other": "label"})
		Expect(seen.lines()).To(BeEmpty())
	})

	It("uses the labels of a deleted object", func(ctx context.Context) {
		create(ctx, "with", mark)
		create(ctx, "without", nil)
		seen.clear()
		for _, name := range []string{"with", "without"} {
			Expect(clients.CoreV1().ConfigMaps(ns).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		}
		Expect(seen.lines()).To(Equal(eachHook("DELETE configmaps " + ns + "/with oldObject DeleteOptions")))
	})

	It("does not match the options of an exec, even if the Pod has the label", func(ctx context.Context) {
		p := pod(ns, "one")
		p.Labels = mark
		_, err := clients.CoreV1().Pods(ns).Create(ctx, p, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		execs := watch(ctx, admissionregistrationv1.ValidatingWebhook{
			ObjectSelector: selecting(mark), NamespaceSelector: only(ns), Rules: webhook.Rules(webhook.OnConnect("", "v1", "pods/exec")),
		}, func(string, *webhook.Request[corev1.PodExecOptions]) error { return webhook.Deny("no exec") })
		err = execute(ctx, ns, "one", "id")
		Expect(err).To(MatchError(apierrors.IsBadRequest, "IsBadRequest"))
		Expect(err).To(MatchError(ContainSubstring("does not have a host assigned")))
		Expect(execs.lines()).To(BeEmpty())
	})
})
