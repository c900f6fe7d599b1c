// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

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

// labelsOnly is a projection of any object with metadata.
type labelsOnly struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

var _ = Describe("rules", func() {
	for _, c := range []struct {
		resource string
		matches  []string
	}{
		{"pods", []string{"pods"}},
		{"pods/status", []string{"pods/status"}},
		{"pods/*", []string{"pods", "pods/status"}},
		{"*/status", []string{"pods/status"}},
		{"*", []string{"pods"}},
		{"*/*", []string{"pods", "pods/status"}},
	} {
		It(fmt.Sprintf("for %s match updates of %s", c.resource, strings.Join(c.matches, " and ")), func(ctx context.Context) {
			ns := newNamespace(ctx)
			pods := clients.CoreV1().Pods(ns)
			p, err := pods.Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			seen := watch[corev1.Pod](ctx, admissionregistrationv1.ValidatingWebhook{
				NamespaceSelector: only(ns), Rules: webhook.Rules(webhook.OnUpdate("", "v1", c.resource)),
			}, nil)
			_, err = pods.Patch(ctx, "one", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			var want []string
			for _, resource := range c.matches {
				want = append(want, eachHook("UPDATE "+resource+" "+ns+"/one object oldObject UpdateOptions")...)
			}
			Expect(seen.lines()).To(Equal(want))
		})
	}

	for _, c := range []struct {
		scope   admissionregistrationv1.ScopeType
		matches []string
	}{
		{admissionregistrationv1.NamespacedScope, []string{"configmaps"}},
		{admissionregistrationv1.ClusterScope, []string{"namespaces", "clusterroles"}},
		{admissionregistrationv1.AllScopes, []string{"namespaces", "configmaps", "clusterroles"}},
	} {
		It(fmt.Sprintf("with scope %s match %s", c.scope, strings.Join(c.matches, " and ")), func(ctx context.Context) {
			mark := uniqueLabels()
			core := webhook.OnCreate("", "v1", "namespaces", "configmaps")
			rbac := webhook.OnCreate("rbac.authorization.k8s.io", "v1", "clusterroles")
			core.Scope, rbac.Scope = &c.scope, &c.scope
			seen := watch[labelsOnly](ctx, admissionregistrationv1.ValidatingWebhook{
				ObjectSelector: selecting(mark), NamespaceSelector: &metav1.LabelSelector{},
				Rules: webhook.Rules(core, rbac),
			}, nil)
			ns := createNamespace(ctx, mark)
			m := configMap(ns.Name, "one")
			m.Labels = mark
			_, err := clients.CoreV1().ConfigMaps(ns.Name).Create(ctx, m, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			createClusterRole(ctx, mark)

			var resources []string
			for _, e := range seen.all() {
				Expect(e.object.Metadata.Labels).To(HaveKeyWithValue("spec", mark["spec"]))
				if e.hook == validating {
					resources = append(resources, e.Resource.Resource)
				}
			}
			Expect(resources).To(Equal(c.matches))
			Expect(seen.all()).To(HaveLen(2 * len(c.matches)))
		})
	}

	It("with only wildcards do not match webhook configurations", func(ctx context.Context) {
		mark := uniqueLabels()
		seen := watch(ctx, admissionregistrationv1.ValidatingWebhook{
			ObjectSelector: selecting(mark), NamespaceSelector: &metav1.LabelSelector{},
			Rules: webhook.Rules(admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
			}),
		}, func(string, *webhook.Request[labelsOnly]) error { return webhook.Deny("nothing may be created") })

		_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: mark}}, metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("nothing may be created")))
		Expect(seen.all()).To(HaveLen(1))

		meta := metav1.ObjectMeta{Name: mark["spec"], Labels: mark}
		api := clients.AdmissionregistrationV1()
		_, err = api.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.MutatingWebhookConfigurations().Delete(ctx, meta.Name, metav1.DeleteOptions{})).To(Succeed())
		_, err = api.ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.ValidatingWebhookConfigurations().Delete(ctx, meta.Name, metav1.DeleteOptions{})).To(Succeed())
		Expect(seen.all()).To(HaveLen(1))
	})
})

var _ = Describe("matchConditions", func() {
	const holds, holdsNot, fails = "object.data.replicas == 'three'", "request.userInfo.username == 'nobody'", "object.data.absent == 'x'"
	for _, kind := range hookKinds {
		Context("of a "+kind+" hook", func() {
			var (
				ns   string
				seen *logbook[corev1.ConfigMap]
			)
			BeforeEach(func(ctx context.Context) { ns, seen = newNamespace(ctx), &logbook[corev1.ConfigMap]{} })

			installConditions := func(ctx context.Context, policy admissionregistrationv1.FailurePolicyType, expressions ...string) {
				GinkgoHelper()
				r := admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector: only(ns), FailurePolicy: &policy, Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
				}
				for i, expression := range expressions {
					r.MatchConditions = append(r.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprint("condition-", i), Expression: expression})
				}
				install(ctx, seen.hook(kind, r, nil))
			}

			It("are all true, so the hook is called", func(ctx context.Context) {
				installConditions(ctx, admissionregistrationv1.Fail, holds, holds)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(Equal([]string{kind + " CREATE configmaps " + ns + "/one object CreateOptions"}))
			})

			It("include a false one, so the hook is not called", func(ctx context.Context) {
				installConditions(ctx, admissionregistrationv1.Fail, holds, holdsNot)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(BeEmpty())
			})

			It("include a false one and one with an error, so the hook is not called", func(ctx context.Context) {
				installConditions(ctx, admissionregistrationv1.Fail, fails, holdsNot)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(BeEmpty())
			})

			It("include one with an error, so the request is rejected with 403 under failurePolicy Fail", func(ctx context.Context) {
				installConditions(ctx, admissionregistrationv1.Fail, holds, fails)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
				Expect(err).To(MatchError(ContainSubstring("no such key: absent")))
				Expect(seen.lines()).To(BeEmpty())
			})

			It("include one with an error, so the hook is not called under failurePolicy Ignore", func(ctx context.Context) {
				installConditions(ctx, admissionregistrationv1.Ignore, holds, fails)
				_, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(BeEmpty())
			})
		})
	}
})

// uniqueLabels returns labels that no other spec uses, to select the objects of one spec.
func uniqueLabels() map[string]string {
	return map[string]string{"spec": fmt.Sprintf("e2e-%d", configurations.Add(1))}
}

func selecting(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

func createNamespace(ctx context.Context, labels map[string]string) *corev1.Namespace {
	GinkgoHelper()
	ns, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: labels},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return ns
}

func createClusterRole(ctx context.Context, labels map[string]string) {
	GinkgoHelper()
	_, err := clients.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: labels},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
