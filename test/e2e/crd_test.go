// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/webhook"
	shopv1 "github.com/admitkit/admitkit/test/e2e/api/v1"
)

var _ = Describe("custom resources", Ordered, ContinueOnFailure, func() {
	BeforeAll(installGadgets)

	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			on := func(policy admissionregistrationv1.MatchPolicyType, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
				return admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version}, MatchPolicy: &policy, Rules: rules,
				}
			}
			const exact, equivalent = admissionregistrationv1.Exact, admissionregistrationv1.Equivalent
			writesOf := func(version string) []admissionregistrationv1.RuleWithOperations {
				return webhook.Rules(webhook.OnWrite(gadgetGroup, version, "gadgets"), webhook.OnDelete(gadgetGroup, version, "gadgets"))
			}
			paint := func(hook string, req *webhook.Request[shopv1.Gadget]) error {
				if hook == mutating && req.Object != nil {
					req.Object.Spec.Color = "red"
				}
				return nil
			}

			It("in another version do not reach a hook with matchPolicy Exact", func(ctx context.Context) {
				seen := watch(ctx, on(exact, writesOf("v1")...), paint)
				created, err := createGadget(ctx, "v1alpha1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Object["spec"]).To(HaveKeyWithValue("color", "blue"))
				Expect(seen.lines()).To(BeEmpty())
			})

			It("in the version of the rule reach a hook with matchPolicy Exact", func(ctx context.Context) {
				seen := watch(ctx, on(exact, writesOf("v1")...), paint)
				created, err := createGadget(ctx, "v1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Object["spec"]).To(HaveKeyWithValue("color", "red"))
				Expect(seen.lines()).To(Equal(eachHook("CREATE gadgets " + ns + "/one object CreateOptions")))
				for _, e := range seen.all() {
					Expect([]any{e.Kind, e.RequestKind}).To(HaveEach(gadgetKind("v1")))
					Expect([]any{e.Resource, e.RequestResource}).To(HaveEach(gadgetResource("v1")))
				}
			})

			It("in another version are converted for a hook with matchPolicy Equivalent, and its changes are converted back", func(ctx context.Context) {
				seen := watch(ctx, on(equivalent, writesOf("v1")...), paint)
				created, err := createGadget(ctx, "v1alpha1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.GetAPIVersion()).To(Equal(gadgetGroup + "/v1alpha1"))
				Expect(created.Object["spec"]).To(HaveKeyWithValue("color", "red"))
				Expect(seen.lines()).To(Equal(eachHook("CREATE gadgets " + ns + "/one object CreateOptions")))
				for i, e := range seen.all() {
					Expect(e.Kind).To(Equal(gadgetKind("v1")))
					Expect(e.Resource).To(Equal(gadgetResource("v1")))
					Expect(e.RequestKind).To(Equal(gadgetKind("v1alpha1")))
					Expect(e.RequestResource).To(Equal(gadgetResource("v1alpha1")))
					Expect(e.object.APIVersion).To(Equal(gadgetGroup + "/v1"))
					Expect(e.object.Spec.Color).To(Equal([]string{"blue", "red"}[i]))
				}
				Expect(gadgetsOf("v1", ns).Get(ctx, "one", metav1.GetOptions{})).To(HaveField("Object", HaveKeyWithValue("spec", HaveKeyWithValue("color", "red"))))
			})

			It("in another version are converted for updates and deletes together with the old object", func(ctx context.Context) {
				created, err := createGadget(ctx, "v1alpha1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).NotTo(HaveOccurred())
				seen := watch(ctx, on(equivalent, writesOf("v1")...), paint)
				client := gadgetsOf("v1alpha1", ns)
				created.SetLabels(map[string]string{"a": "b"})
				updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(updated.Object["spec"]).To(HaveKeyWithValue("color", "red"))
				awaitCached(ctx, func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
					return client.Get(ctx, name, o)
				}, updated)
				Expect(client.Delete(ctx, "one", metav1.DeleteOptions{})).To(Succeed())
				Expect(seen.lines()).To(Equal(append(
					eachHook("UPDATE gadgets "+ns+"/one object oldObject UpdateOptions"),
					eachHook("DELETE gadgets "+ns+"/one oldObject DeleteOptions")...)))
				for i, e := range seen.all() {
					Expect(e.RequestKind).To(Equal(gadgetKind("v1alpha1")))
					Expect(e.old.APIVersion).To(Equal(gadgetGroup + "/v1"))
					Expect(e.old.Spec.Color).To(Equal([]string{"blue", "blue", "red", "red"}[i]))
				}
			})

			It("in a version that the hook does not handle cause a failure that names both versions", func(ctx context.Context) {
				seen := watch(ctx, on(exact, webhook.OnWrite(gadgetGroup, "*", "gadgets")), paint)
				_, err := createGadget(ctx, "v1alpha1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).To(MatchError(apierrors.IsInternalError, "IsInternalError"))
				Expect(err).To(MatchError(ContainSubstring("the hook handles kind Gadget (v1), not kind Gadget (shop.example.com/v1alpha1)")))
				Expect(seen.lines()).To(BeEmpty())
			})

			It("reach a hook for unstructured.Unstructured in the version of the request", func(ctx context.Context) {
				seen := watch(ctx, on(exact, webhook.OnWrite(gadgetGroup, "*", "gadgets")),
					func(hook string, req *webhook.Request[unstructured.Unstructured]) error {
						if hook == mutating {
							return unstructured.SetNestedField(req.Object.Object, "green", "spec", "color")
						}
						return nil
					})
				for _, v := range []string{"v1", "v1alpha1"} {
					created, err := createGadget(ctx, v, ns, v, map[string]any{"color": "blue"})
					Expect(err).NotTo(HaveOccurred())
					Expect(created.Object["spec"]).To(HaveKeyWithValue("color", "green"))
				}
				var versions []string
				for _, e := range seen.all() {
					Expect(e.object.GetKind()).To(Equal("Gadget"))
					Expect(e.Kind.Version).To(Equal(e.RequestKind.Version))
					versions = append(versions, e.object.GetAPIVersion())
				}
				Expect(versions).To(Equal([]string{gadgetGroup + "/v1", gadgetGroup + "/v1", gadgetGroup + "/v1alpha1", gadgetGroup + "/v1alpha1"}))
			})

			It("reach a hook for a projection, with the old object", func(ctx context.Context) {
				created, err := createGadget(ctx, "v1alpha1", ns, "one", map[string]any{"color": "blue", "replicas": int64(7)})
				Expect(err).NotTo(HaveOccurred())
				type painted struct {
					Spec struct {
						Color string `json:"color,omitempty"`
					} `json:"spec"`
				}
				seen := watch(ctx, on(equivalent, writesOf("v1")...), func(hook string, req *webhook.Request[painted]) error {
					old, err := req.OldObject()
					if err == nil && hook == mutating {
						req.Object.Spec.Color = old.Spec.Color + "ish " + req.Object.Spec.Color
					}
					return err
				})
				Expect(unstructured.SetNestedField(created.Object, "red", "spec", "color")).To(Succeed())
				updated, err := gadgetsOf("v1alpha1", ns).Update(ctx, created, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(updated.Object["spec"]).To(Equal(map[string]any{"color": "blueish red", "replicas": int64(7)}))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE gadgets " + ns + "/one object oldObject UpdateOptions")))
			})

			It("are pruned and defaulted before a hook sees them", func(ctx context.Context) {
				seen := watch[unstructured.Unstructured](ctx, on(equivalent, writesOf("v1")...), nil)
				_, err := createGadget(ctx, "v1", ns, "one", map[string]any{"color": "blue", "unheardOf": "x"})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.all()).To(HaveLen(2))
				for _, e := range seen.all() {
					Expect(e.object.Object["spec"]).To(Equal(map[string]any{"color": "blue", "replicas": int64(2)}))
				}
			})

			It("are defaulted again after a hook changed them, but pruned only when they are stored", func(ctx context.Context) {
				seen := watch(ctx, on(equivalent, writesOf("v1")...), func(hook string, req *webhook.Request[shopv1.Gadget]) error {
					if hook == mutating {
						req.Object.Spec.Replicas = 0 // omitempty leaves it out of the patched object
						req.Object.Spec.Notes = "not in the schema"
					}
					return nil
				})
				created, err := createGadget(ctx, "v1", ns, "one", map[string]any{"color": "blue", "replicas": int64(7)})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Object["spec"]).To(Equal(map[string]any{"color": "blue", "replicas": int64(2)}))
				Expect(seen.all()[0].object.Spec).To(Equal(shopv1.GadgetSpec{Color: "blue", Replicas: 7}))
				Expect(seen.all()[1].object.Spec).To(Equal(shopv1.GadgetSpec{Color: "blue", Replicas: 2, Notes: "not in the schema"}))
			})

			It("reach a hook with all their fields when the status changes", func(ctx context.Context) {
				_, err := createGadget(ctx, "v1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).NotTo(HaveOccurred())
				parents := watch[shopv1.Gadget](ctx, on(equivalent, writesOf("v1")...), nil)
				seen := watch(ctx, on(equivalent, webhook.OnUpdate(gadgetGroup, "v1", "gadgets/status")),
					func(hook string, req *webhook.Request[shopv1.Gadget]) error {
						if hook == mutating {
							req.Object.Status.Phase = "Really" + req.Object.Status.Phase
						}
						return nil
					})
				changed, err := gadgetsOf("v1", ns).Patch(ctx, "one", types.MergePatchType, []byte(`{"status":{"phase":"Ready"}}`), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
				Expect(changed.Object["status"]).To(HaveKeyWithValue("phase", "ReallyReady"))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE gadgets/status " + ns + "/one object oldObject UpdateOptions")))
				for _, e := range seen.all() {
					Expect(e.object.Spec.Color).To(Equal("blue"))
					Expect(e.old.Status.Phase).To(BeEmpty())
				}
				Expect(parents.lines()).To(BeEmpty())
			})

			It("are scaled through an autoscaling/v1 Scale", func(ctx context.Context) {
				_, err := createGadget(ctx, "v1", ns, "one", map[string]any{"color": "blue"})
				Expect(err).NotTo(HaveOccurred())
				seen := watch(ctx, on(equivalent, webhook.OnUpdate(gadgetGroup, "v1", "gadgets/scale")),
					func(hook string, req *webhook.Request[autoscalingv1.Scale]) error {
						if hook == mutating {
							req.Object.Spec.Replicas = min(req.Object.Spec.Replicas, 5)
						}
						return nil
					})
				scaled, err := gadgetsOf("v1", ns).Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"replicas":50}}`), metav1.PatchOptions{}, "scale")
				Expect(err).NotTo(HaveOccurred())
				Expect(scaled.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(5)))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE gadgets/scale " + ns + "/one object oldObject UpdateOptions")))
				for i, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}))
					Expect([]int32{e.old.Spec.Replicas, e.object.Spec.Replicas}).To(Equal([]int32{2, []int32{50, 5}[i]}))
				}
			})
		})
	}
})
