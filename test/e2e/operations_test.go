// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("a hook for all operations", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var (
				ns   string
				pods typedcorev1.PodInterface
				seen *logbook[corev1.Pod]
			)
			BeforeEach(func(ctx context.Context) {
				ns = newNamespace(ctx)
				pods = clients.CoreV1().Pods(ns)
				seen = watch(ctx, admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector:       only(ns),
					AdmissionReviewVersions: []string{version},
					Rules:                   webhook.Rules(webhook.OnWrite("", "v1", "pods"), webhook.OnDelete("", "v1", "pods")),
				}, func(hook string, req *webhook.Request[corev1.Pod]) error {
					if hook == mutating && req.Object != nil {
						metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "mutated-on", string(req.Operation))
					}
					return nil
				})
			})
			// prepare creates a Pod and clears the calls for it.
			prepare := func(ctx context.Context, p *corev1.Pod) *corev1.Pod {
				GinkgoHelper()
				created, err := pods.Create(ctx, p, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(HaveLen(2))
				seen.clear()
				return created
			}

			It("sees a create and changes the stored object", func(ctx context.Context) {
				created, err := pods.Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Labels).To(HaveKeyWithValue("mutated-on", "CREATE"))
				Expect(seen.lines()).To(Equal(eachHook("CREATE pods " + ns + "/one object CreateOptions")))
				first, second := seen.all()[0].object, seen.all()[1].object
				Expect(first.Namespace).To(Equal(ns))
				Expect(first.Labels).To(BeEmpty())
				Expect(second.Labels).To(Equal(created.Labels))
				Expect(pods.Get(ctx, "one", metav1.GetOptions{})).To(HaveField("Labels", created.Labels))
			})

			It("sees a generated name only if it is a validating hook", func(ctx context.Context) {
				p := pod(ns, "")
				p.GenerateName = "some-"
				created, err := pods.Create(ctx, p, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(Equal([]string{
					"mutating CREATE pods " + ns + "/ object CreateOptions",
					"validating CREATE pods " + ns + "/" + created.Name + " object CreateOptions",
				}))
				first, second := seen.all()[0].object, seen.all()[1].object
				Expect([]any{first.GenerateName, first.Name, first.UID, first.CreationTimestamp}).To(
					Equal([]any{"some-", "", types.UID(""), metav1.Time{}}))
				Expect([]any{second.GenerateName, second.Name, second.UID}).To(Equal([]any{"some-", created.Name, created.UID}))
				Expect(second.CreationTimestamp.IsZero()).To(BeFalse())
			})

			It("sees an update with the stored and the new object", func(ctx context.Context) {
				p := prepare(ctx, pod(ns, "one"))
				p.Spec.Containers[0].Image = "example.com/app:2"
				updated, err := pods.Update(ctx, p, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(updated.Labels).To(HaveKeyWithValue("mutated-on", "UPDATE"))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE pods " + ns + "/one object oldObject UpdateOptions")))
				for _, e := range seen.all() {
					Expect(e.old.Spec.Containers[0].Image).To(Equal("example.com/app:1"))
					Expect(e.old.Labels).To(HaveKeyWithValue("mutated-on", "CREATE"))
					Expect(e.object.Spec.Containers[0].Image).To(Equal("example.com/app:2"))
				}
			})

			for _, patch := range []struct {
				name string
				kind types.PatchType
				body string
			}{
				{"a JSON merge patch", types.MergePatchType, `{"metadata":{"annotations":{"patched":"yes"}}}`},
				{"a strategic patch", types.StrategicMergePatchType, `{"metadata":{"annotations":{"patched":"yes"}},"spec":{"containers":[{"name":"app","image":"example.com/app:2"}]}}`},
				{"a JSON patch", types.JSONPatchType, `[{"op":"add","path":"/metadata/annotations","value":{"patched":"yes"}}]`},
			} {
				It("sees the result of "+patch.name+" as an update", func(ctx context.Context) {
					p := prepare(ctx, pod(ns, "one"))
					patched, err := pods.Patch(ctx, p.Name, patch.kind, []byte(patch.body), metav1.PatchOptions{})
					Expect(err).NotTo(HaveOccurred())
					Expect(patched.Labels).To(HaveKeyWithValue("mutated-on", "UPDATE"))
					Expect(seen.lines()).To(Equal(eachHook("UPDATE pods " + ns + "/one object oldObject UpdateOptions")))
					for _, e := range seen.all() {
						Expect(e.old.Annotations).To(BeEmpty())
						Expect(e.old.Spec).To(Equal(p.Spec))
						Expect(e.object.Annotations).To(HaveKeyWithValue("patched", "yes"))
						Expect(e.object.Spec).To(Equal(patched.Spec))
					}
				})
			}

			It("sees a patch that changes nothing", func(ctx context.Context) {
				p := prepare(ctx, pod(ns, "one"))
				patched, err := pods.Patch(ctx, p.Name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(patched.Labels).To(HaveKeyWithValue("mutated-on", "UPDATE"))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE pods " + ns + "/one object oldObject UpdateOptions")))
				first := seen.all()[0]
				Expect(first.object).To(Equal(first.old))
			})

			It("sees an apply that creates as a create, with its field manager", func(ctx context.Context) {
				applied, err := pods.Apply(ctx, applied(ns, "one", "example.com/app:1"), metav1.ApplyOptions{FieldManager: "applier"})
				Expect(err).NotTo(HaveOccurred())
				Expect(applied.Labels).To(HaveKeyWithValue("mutated-on", "CREATE"))
				Expect(seen.lines()).To(Equal(eachHook("CREATE pods " + ns + "/one object CreateOptions")))
				for _, e := range seen.all() {
					Expect(e.options.FieldManager).To(Equal("applier"))
				}
			})

			It("sees an apply that updates as an update, with its field manager", func(ctx context.Context) {
				prepare(ctx, pod(ns, "one"))
				applied, err := pods.Apply(ctx, applied(ns, "one", "example.com/app:2"), metav1.ApplyOptions{FieldManager: "applier", Force: true})
				Expect(err).NotTo(HaveOccurred())
				Expect(applied.Labels).To(HaveKeyWithValue("mutated-on", "UPDATE"))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE pods " + ns + "/one object oldObject UpdateOptions")))
				for _, e := range seen.all() {
					Expect(e.options.FieldManager).To(Equal("applier"))
					Expect(e.old.Spec.Containers[0].Image).To(Equal("example.com/app:1"))
					Expect(e.object.Spec.Containers[0].Image).To(Equal("example.com/app:2"))
				}
			})

			It("sees a delete with a grace period once, and the object stays", func(ctx context.Context) {
				bound := pod(ns, "one")
				bound.Spec.NodeName = "some-node"
				prepare(ctx, bound)
				Expect(pods.Delete(ctx, "one", metav1.DeleteOptions{GracePeriodSeconds: new(int64(60))})).To(Succeed())
				Expect(seen.lines()).To(Equal(eachHook("DELETE pods " + ns + "/one oldObject DeleteOptions")))
				for _, e := range seen.all() {
					Expect(e.options.GracePeriodSeconds).To(HaveValue(BeEquivalentTo(60)))
					Expect(e.old.Spec.NodeName).To(Equal("some-node"))
					Expect(e.old.DeletionTimestamp).To(BeNil())
				}
				left, err := pods.Get(ctx, "one", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(left.DeletionTimestamp).NotTo(BeNil())
				Expect(left.DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(60)))
			})

			It("sees an immediate delete twice, the second time with the deletion timestamp", func(ctx context.Context) {
				prepare(ctx, pod(ns, "one"))
				Expect(pods.Delete(ctx, "one", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})).To(Succeed())
				rounds := map[string][]bool{}
				for _, e := range seen.all() {
					Expect(e.Operation).To(Equal(admissionv1.Delete))
					Expect(e.options.GracePeriodSeconds).To(HaveValue(BeEquivalentTo(0)))
					rounds[e.hook] = append(rounds[e.hook], e.old.DeletionTimestamp != nil)
				}
				// The API server repeats the second step if its cached object is from before the first
				// step. So the hooks may get one more call.
				for _, hook := range hookKinds {
					Expect(rounds[hook]).To(Or(Equal([]bool{false, true}), Equal([]bool{false, false, true})), hook)
				}
				_, err := pods.Get(ctx, "one", metav1.GetOptions{})
				Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
			})

			It("sees the removal of the last finalizer as an update, after which the object is gone", func(ctx context.Context) {
				held := pod(ns, "one")
				held.Finalizers = []string{"example.com/hold"}
				prepare(ctx, held)
				Expect(pods.Delete(ctx, "one", metav1.DeleteOptions{})).To(Succeed())
				Expect(seen.lines()).To(Equal(eachHook("DELETE pods " + ns + "/one oldObject DeleteOptions")))
				deleted, err := pods.Get(ctx, "one", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				awaitCached(ctx, pods.Get, deleted)
				seen.clear()

				_, err = pods.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(Equal(eachHook("UPDATE pods " + ns + "/one object oldObject UpdateOptions")))
				for _, e := range seen.all() {
					Expect(e.old.Finalizers).To(HaveLen(1))
					Expect(e.object.Finalizers).To(BeEmpty())
					Expect(e.object.DeletionTimestamp).NotTo(BeNil())
				}
				_, err = pods.Get(ctx, "one", metav1.GetOptions{})
				Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
			})

			It("does not validate an object that the API server finds invalid", func(ctx context.Context) {
				invalid := pod(ns, "one")
				invalid.Spec.Containers[0].Name = "Not A Name"
				_, err := pods.Create(ctx, invalid, metav1.CreateOptions{})
				Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
				Expect(seen.lines()).To(Equal([]string{"mutating CREATE pods " + ns + "/one object CreateOptions"}))
			})

			It("sees the create of an object that already exists", func(ctx context.Context) {
				prepare(ctx, pod(ns, "one"))
				_, err := pods.Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).To(MatchError(apierrors.IsAlreadyExists, "IsAlreadyExists"))
				Expect(seen.lines()).To(Equal(eachHook("CREATE pods " + ns + "/one object CreateOptions")))
			})
		})

		Context("with "+version+" reviews of objects without a grace period", func() {
			var (
				ns       string
				seen     *logbook[corev1.ConfigMap]
				someMaps typedcorev1.ConfigMapInterface
			)
			BeforeEach(func(ctx context.Context) {
				ns = newNamespace(ctx)
				someMaps = clients.CoreV1().ConfigMaps(ns)
				for _, name := range []string{"one", "two", "kept"} {
					_, err := someMaps.Create(ctx, configMap(ns, name), metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
				}
				seen = watch(ctx, admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector:       only(ns),
					AdmissionReviewVersions: []string{version},
					Rules:                   webhook.Rules(webhook.OnDelete("", "v1", "configmaps")),
				}, func(_ string, req *webhook.Request[corev1.ConfigMap]) error {
					old, err := req.OldObject()
					if err == nil && old.Name == "kept" {
						return webhook.Deny("kept")
					}
					return err
				})
			})

			It("sees a delete once", func(ctx context.Context) {
				Expect(someMaps.Delete(ctx, "one", metav1.DeleteOptions{})).To(Succeed())
				Expect(seen.lines()).To(Equal(eachHook("DELETE configmaps " + ns + "/one oldObject DeleteOptions")))
			})

			It("can deny a delete, and the object stays", func(ctx context.Context) {
				err := someMaps.Delete(ctx, "kept", metav1.DeleteOptions{})
				Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
				Expect(seen.lines()).To(Equal([]string{"mutating DELETE configmaps " + ns + "/kept oldObject DeleteOptions"}))
				Expect(someMaps.Get(ctx, "kept", metav1.GetOptions{})).To(HaveField("DeletionTimestamp", BeNil()))
			})

			It("sees each item of a deletecollection, with its name in the old object only", func(ctx context.Context) {
				err := someMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=kept"})
				Expect(err).NotTo(HaveOccurred())
				line := eachHook("DELETE configmaps " + ns + "/ oldObject DeleteOptions")
				Expect(seen.lines()).To(ConsistOf(append(line, line...)))
				var names []string
				for _, e := range seen.all() {
					names = append(names, e.hook+" "+e.old.Name)
				}
				Expect(names).To(ConsistOf("mutating one", "mutating two", "validating one", "validating two"))
				Expect(someMaps.List(ctx, metav1.ListOptions{})).To(HaveField("Items", HaveLen(1)))
			})

			It("can deny one item of a deletecollection, which stays", func(ctx context.Context) {
				err := someMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=kept"})
				Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
				Expect(someMaps.Get(ctx, "kept", metav1.GetOptions{})).To(HaveField("DeletionTimestamp", BeNil()))
			})
		})

		Context("with "+version+" reviews of objects that a PUT may create", func() {
			It("sees a PUT that creates as a create", func(ctx context.Context) {
				ns := newNamespace(ctx)
				seen := watch[coordinationv1.Lease](ctx, admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector:       only(ns),
					AdmissionReviewVersions: []string{version},
					Rules:                   webhook.Rules(webhook.OnWrite("coordination.k8s.io", "v1", "leases")),
				}, nil)
				body, err := json.Marshal(coordinationv1.Lease{
					TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"},
				})
				Expect(err).NotTo(HaveOccurred())
				put := clients.CoordinationV1().RESTClient().Put().Namespace(ns).Resource("leases").Name("one").
					Param("fieldManager", "putter").SetHeader("Content-Type", "application/json").Body(body)
				Expect(put.Do(ctx).Error()).To(Succeed())
				Expect(seen.lines()).To(Equal(eachHook("CREATE leases " + ns + "/one object CreateOptions")))
				for _, e := range seen.all() {
					Expect(e.options.FieldManager).To(Equal("putter"))
				}
			})
		})
	}
})

// applied returns the apply configuration of a Pod with this image.
func applied(namespace, name, image string) *applycorev1.PodApplyConfiguration {
	return applycorev1.Pod(name, namespace).WithSpec(applycorev1.PodSpec().
		WithContainers(applycorev1.Container().WithName("app").WithImage(image)))
}
