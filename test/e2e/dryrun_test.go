// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var dryRun = []string{metav1.DryRunAll}

var _ = Describe("dry runs", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			on := func(effects admissionregistrationv1.SideEffectClass, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
				return admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version}, SideEffects: &effects, Rules: rules,
				}
			}
			writes := webhook.Rules(webhook.OnWrite("", "v1", "configmaps"), webhook.OnDelete("", "v1", "configmaps"))

			for _, effects := range []admissionregistrationv1.SideEffectClass{
				admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun,
			} {
				It(fmt.Sprintf("reach a hook with sideEffects %s for every operation, and nothing is stored", effects), func(ctx context.Context) {
					stored, err := createConfigMap(ctx, ns, "stored")
					Expect(err).NotTo(HaveOccurred())
					seen := watch(ctx, on(effects, writes...), func(_ string, req *webhook.Request[corev1.ConfigMap]) error {
						if req.Object != nil {
							req.Object.Data["mutated"] = "yes"
						}
						return nil
					})
					maps := clients.CoreV1().ConfigMaps(ns)
					created, err := maps.Create(ctx, configMap(ns, "one"), metav1.CreateOptions{DryRun: dryRun})
					Expect(err).NotTo(HaveOccurred())
					Expect(created.Data).To(HaveKeyWithValue("mutated", "yes"))
					_, err = maps.Patch(ctx, "stored", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{DryRun: dryRun})
					Expect(err).NotTo(HaveOccurred())
					Expect(maps.Delete(ctx, "stored", metav1.DeleteOptions{DryRun: dryRun})).To(Succeed())

					Expect(seen.lines()).To(Equal(append(append(
						eachHook("CREATE configmaps "+ns+"/one object CreateOptions dry-run"),
						eachHook("UPDATE configmaps "+ns+"/stored object oldObject UpdateOptions dry-run")...),
						eachHook("DELETE configmaps "+ns+"/stored oldObject DeleteOptions dry-run")...)))
					for _, e := range seen.all() {
						Expect(e.options.DryRun).To(Equal(dryRun))
					}
					left, err := maps.List(ctx, metav1.ListOptions{})
					Expect(err).NotTo(HaveOccurred())
					Expect(left.Items).To(HaveExactElements(HaveField("ResourceVersion", stored.ResourceVersion)))
				})
			}

			It("run no side effect, unlike normal requests", func(ctx context.Context) {
				var done atomic.Int64
				seen := watch(ctx, on(admissionregistrationv1.SideEffectClassNoneOnDryRun, writes...),
					func(_ string, req *webhook.Request[corev1.ConfigMap]) error {
						return req.SideEffect(func() error { done.Add(1); return nil })
					})
				maps := clients.CoreV1().ConfigMaps(ns)
				_, err := maps.Create(ctx, configMap(ns, "one"), metav1.CreateOptions{DryRun: dryRun})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(HaveLen(2))
				Expect(done.Load()).To(BeZero())

				_, err = maps.Create(ctx, configMap(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(HaveLen(4))
				Expect(done.Load()).To(BeEquivalentTo(2))
			})

			It("fail, like normal requests, if a hook with sideEffects None tries a side effect", func(ctx context.Context) {
				var done atomic.Int64
				watch(ctx, on(admissionregistrationv1.SideEffectClassNone, writes...),
					func(_ string, req *webhook.Request[corev1.ConfigMap]) error {
						return req.SideEffect(func() error { done.Add(1); return nil })
					})
				for _, options := range []metav1.CreateOptions{{DryRun: dryRun}, {}} {
					_, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, "one"), options)
					Expect(err).To(MatchError(apierrors.IsInternalError, "IsInternalError"))
					Expect(err).To(MatchError(ContainSubstring("set it to NoneOnDryRun")))
				}
				Expect(done.Load()).To(BeZero())
			})

			It("of an exec are refused by the API server before it calls a hook", func(ctx context.Context) {
				seen := watch[corev1.PodExecOptions](ctx, on(admissionregistrationv1.SideEffectClassNone, webhook.OnConnect("", "v1", "pods/exec")), nil)
				err := clients.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name("one").SubResource("exec").
					Param("dryRun", metav1.DryRunAll).Param("command", "id").Do(ctx).Error()
				Expect(err).To(MatchError(apierrors.IsBadRequest, "IsBadRequest"))
				Expect(seen.lines()).To(BeEmpty())
			})
		})
	}
})

var _ = Describe("requests", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			It("have the user that sent them, with groups and extra", func(ctx context.Context) {
				user := rest.ImpersonationConfig{
					UserName: "jane", UID: "0042", Groups: []string{"system:masters", "developers"},
					Extra: map[string][]string{"example.com/scopes": {"view", "edit"}},
				}
				seen := watch(ctx, admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version},
					Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
				}, func(hook string, req *webhook.Request[corev1.ConfigMap]) error {
					if hook == mutating {
						req.Object.Data["created-by"] = req.UserInfo.Username
					}
					return nil
				})
				impersonated := rest.CopyConfig(config)
				impersonated.Impersonate = user
				jane, err := kubernetes.NewForConfig(impersonated)
				Expect(err).NotTo(HaveOccurred())
				created, err := jane.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Data).To(HaveKeyWithValue("created-by", "jane"))
				Expect(seen.all()).To(HaveLen(2))
				for _, e := range seen.all() {
					Expect(e.UserInfo).To(Equal(authenticationv1.UserInfo{
						Username: "jane", UID: "0042", Groups: []string{"system:masters", "developers", "system:authenticated"},
						Extra: map[string]authenticationv1.ExtraValue{"example.com/scopes": {"view", "edit"}},
					}))
				}
			})

			It("have the options of a create", func(ctx context.Context) {
				seen := optionsOf[metav1.CreateOptions](ctx, version, ns)
				_, err := clients.CoreV1().ConfigMaps(ns).Create(ctx, configMap(ns, "one"), metav1.CreateOptions{
					DryRun: dryRun, FieldManager: "tester", FieldValidation: metav1.FieldValidationStrict,
				})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.all()).To(HaveLen(2))
				Expect(seen.all()).To(HaveEach(metav1.CreateOptions{
					TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "CreateOptions"},
					DryRun:   dryRun, FieldManager: "tester", FieldValidation: metav1.FieldValidationStrict,
				}))
			})

			It("have the options of an update, and those of a patch as options of an update", func(ctx context.Context) {
				created, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				seen := optionsOf[metav1.UpdateOptions](ctx, version, ns)
				maps := clients.CoreV1().ConfigMaps(ns)
				_, err = maps.Update(ctx, created, metav1.UpdateOptions{DryRun: dryRun, FieldManager: "tester"})
				Expect(err).NotTo(HaveOccurred())
				_, err = maps.Patch(ctx, "one", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dryRun, FieldManager: "tester"})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.all()).To(HaveLen(4))
				Expect(seen.all()).To(HaveEach(metav1.UpdateOptions{
					TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "UpdateOptions"},
					DryRun:   dryRun, FieldManager: "tester",
				}))
			})

			It("have the options of a delete", func(ctx context.Context) {
				created, err := createConfigMap(ctx, ns, "one")
				Expect(err).NotTo(HaveOccurred())
				seen := optionsOf[metav1.DeleteOptions](ctx, version, ns)
				options := metav1.DeleteOptions{
					GracePeriodSeconds: new(int64(7)), Preconditions: metav1.NewUIDPreconditions(string(created.UID)),
					PropagationPolicy: new(metav1.DeletePropagationBackground), DryRun: dryRun,
				}
				Expect(clients.CoreV1().ConfigMaps(ns).Delete(ctx, "one", options)).To(Succeed())
				options.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "DeleteOptions"}
				Expect(seen.all()).To(HaveLen(2))
				Expect(seen.all()).To(HaveEach(options))
			})
		})
	}
})

// optionsOf registers hooks for ConfigMaps and returns a collection. The hooks add the decoded options of each request
// to it.
func optionsOf[O any](ctx context.Context, version, namespace string) *collection[O] {
	GinkgoHelper()
	var seen collection[O]
	watch(ctx, admissionregistrationv1.ValidatingWebhook{
		NamespaceSelector: only(namespace), AdmissionReviewVersions: []string{version},
		Rules: webhook.Rules(webhook.OnWrite("", "v1", "configmaps"), webhook.OnDelete("", "v1", "configmaps")),
	}, func(_ string, req *webhook.Request[corev1.ConfigMap]) error {
		var options O
		err := req.DecodeOptions(&options)
		seen.add(options)
		return err
	})
	return &seen
}
