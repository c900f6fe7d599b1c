// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("built-in types", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			on := func(policy admissionregistrationv1.MatchPolicyType, rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
				return admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version}, MatchPolicy: &policy, Rules: rules,
				}
			}
			autoscaler := func() *autoscalingv1.HorizontalPodAutoscaler {
				return &autoscalingv1.HorizontalPodAutoscaler{
					ObjectMeta: metav1.ObjectMeta{Name: "web"},
					Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
						ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
						MaxReplicas:    50, TargetCPUUtilizationPercentage: new(int32(80)),
					},
				}
			}
			limit := func(hook string, req *webhook.Request[autoscalingv2.HorizontalPodAutoscaler]) error {
				if hook == mutating {
					req.Object.Spec.MaxReplicas = min(req.Object.Spec.MaxReplicas, 10)
				}
				return nil
			}

			It("in another version are converted for a hook with matchPolicy Equivalent, and its changes are converted back", func(ctx context.Context) {
				seen := watch(ctx, on(admissionregistrationv1.Equivalent, webhook.OnWrite("autoscaling", "v2", "horizontalpodautoscalers")), limit)
				created, err := clients.AutoscalingV1().HorizontalPodAutoscalers(ns).Create(ctx, autoscaler(), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Spec.MaxReplicas).To(BeEquivalentTo(10))
				Expect(created.Spec.TargetCPUUtilizationPercentage).To(HaveValue(BeEquivalentTo(80)))

				created.Spec.MaxReplicas = 3
				_, err = clients.AutoscalingV1().HorizontalPodAutoscalers(ns).Update(ctx, created, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.lines()).To(Equal(append(
					eachHook("CREATE horizontalpodautoscalers "+ns+"/web object CreateOptions"),
					eachHook("UPDATE horizontalpodautoscalers "+ns+"/web object oldObject UpdateOptions")...)))
				for i, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}))
					Expect(e.RequestKind).To(Equal(metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}))
					Expect(e.Resource.Version).To(Equal("v2"))
					Expect(e.RequestResource.Version).To(Equal("v1"))
					Expect(e.object.Spec.MaxReplicas).To(BeEquivalentTo([]int{50, 10, 3, 3}[i]))
					objects := []*autoscalingv2.HorizontalPodAutoscaler{e.object}
					if e.old != nil {
						objects = append(objects, e.old)
					}
					for _, o := range objects {
						Expect(o.APIVersion).To(Equal("autoscaling/v2"))
						Expect(o.Spec.Metrics).To(HaveExactElements(HaveField("Resource.Target.AverageUtilization", HaveValue(BeEquivalentTo(80)))))
					}
				}
			})

			It("in another version do not reach a hook with matchPolicy Exact", func(ctx context.Context) {
				seen := watch(ctx, on(admissionregistrationv1.Exact, webhook.OnWrite("autoscaling", "v2", "horizontalpodautoscalers")), limit)
				created, err := clients.AutoscalingV1().HorizontalPodAutoscalers(ns).Create(ctx, autoscaler(), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Spec.MaxReplicas).To(BeEquivalentTo(50))
				Expect(seen.lines()).To(BeEmpty())
			})

			It("in another group with the same objects reach a hook with matchPolicy Equivalent", func(ctx context.Context) {
				seen := watch(ctx, on(admissionregistrationv1.Equivalent, webhook.OnCreate("events.k8s.io", "v1", "events")),
					func(hook string, req *webhook.Request[eventsv1.Event]) error {
						if hook == mutating {
							req.Object.Note += ", as a hook saw"
						}
						return nil
					})
				created, err := clients.CoreV1().Events(ns).Create(ctx, &corev1.Event{
					ObjectMeta: metav1.ObjectMeta{Name: "one"}, Message: "it happened",
					InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: "some"},
				}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Message).To(Equal("it happened, as a hook saw"))
				Expect(seen.lines()).To(Equal(eachHook("CREATE events " + ns + "/one object CreateOptions")))
				for _, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}))
					Expect(e.RequestKind).To(Equal(metav1.GroupVersionKind{Version: "v1", Kind: "Event"}))
					Expect(e.object.Regarding.Name).To(Equal("some"))
				}
			})
		})
	}
})
