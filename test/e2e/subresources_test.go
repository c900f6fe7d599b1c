// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ = Describe("a hook for subresources", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			var ns string
			BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

			on := func(rules ...admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ValidatingWebhook {
				return admissionregistrationv1.ValidatingWebhook{
					NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version}, Rules: rules,
				}
			}
			createPod := func(ctx context.Context, name string) {
				GinkgoHelper()
				_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, name), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			// bystander registers hooks for Pods and records their calls. A request for a subresource must not cause any.
			bystander := func(ctx context.Context) *logbook[corev1.Pod] {
				return watch[corev1.Pod](ctx, on(webhook.OnWrite("", "v1", "pods"), webhook.OnDelete("", "v1", "pods")), nil)
			}

			It("can deny an exec before the API server looks for the Pod", func(ctx context.Context) {
				seen := watch(ctx, on(webhook.OnConnect("", "v1", "pods/exec")),
					func(hook string, req *webhook.Request[corev1.PodExecOptions]) error {
						if hook == validating {
							return webhook.Denyf("no %s in a Pod", req.Object.Command[0])
						}
						return nil
					})
				err := execute(ctx, ns, "nobody", "sh", "-c", "id")
				Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
				Expect(err).To(MatchError(ContainSubstring("no sh in a Pod")))
				Expect(seen.lines()).To(Equal(eachHook("CONNECT pods/exec " + ns + "/nobody object")))
				for _, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Version: "v1", Kind: "PodExecOptions"}))
					Expect(e.object.Command).To(Equal([]string{"sh", "-c", "id"}))
					Expect(e.object.Stdout).To(BeTrue())
				}
			})

			It("can change the options of an exec, which the validating hook and the API server use", func(ctx context.Context) {
				createPod(ctx, "one")
				seen := watch(ctx, on(webhook.OnConnect("", "v1", "pods/exec")),
					func(hook string, req *webhook.Request[corev1.PodExecOptions]) error {
						if hook == mutating {
							req.Object.Container = "sandbox"
						}
						return nil
					})
				err := execute(ctx, ns, "one", "id")
				Expect(err).To(MatchError(apierrors.IsBadRequest, "IsBadRequest"))
				Expect(err).To(MatchError(ContainSubstring("container sandbox is not valid for pod one")))
				Expect(seen.all()).To(HaveLen(2))
				Expect(seen.all()[0].object.Container).To(BeEmpty())
				Expect(seen.all()[1].object.Container).To(Equal("sandbox"))
			})

			It("sees a status update with the whole object, and can change it", func(ctx context.Context) {
				createPod(ctx, "one")
				pods := bystander(ctx)
				seen := watch(ctx, on(webhook.OnUpdate("", "v1", "pods/status")),
					func(hook string, req *webhook.Request[corev1.Pod]) error {
						if hook == mutating {
							req.Object.Status.Reason = "Mutated"
						}
						return nil
					})
				p, err := clients.CoreV1().Pods(ns).Get(ctx, "one", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				p.Status.Message = "hello"
				updated, err := clients.CoreV1().Pods(ns).UpdateStatus(ctx, p, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(updated.Status).To(And(HaveField("Message", "hello"), HaveField("Reason", "Mutated")))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE pods/status " + ns + "/one object oldObject UpdateOptions")))
				for _, e := range seen.all() {
					Expect(e.RequestSubResource).To(Equal("status"))
					Expect(e.old.Status.Message).To(BeEmpty())
					Expect(e.object.Status.Message).To(Equal("hello"))
					Expect(e.object.Spec.Containers).To(Equal(p.Spec.Containers))
				}
				Expect(pods.lines()).To(BeEmpty())
			})

			It("sees an ephemeral container as an update of the Pod", func(ctx context.Context) {
				createPod(ctx, "one")
				pods := bystander(ctx)
				seen := watch(ctx, on(webhook.OnUpdate("", "v1", "pods/ephemeralcontainers")),
					func(hook string, req *webhook.Request[corev1.Pod]) error {
						if hook == mutating {
							req.Object.Spec.EphemeralContainers[0].Image = "registry.example.com/debug:1"
						}
						return nil
					})
				p, err := clients.CoreV1().Pods(ns).Get(ctx, "one", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					Name: "debug", Image: "debug", ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				}}}
				updated, err := clients.CoreV1().Pods(ns).UpdateEphemeralContainers(ctx, "one", p, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(updated.Spec.EphemeralContainers[0].Image).To(Equal("registry.example.com/debug:1"))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE pods/ephemeralcontainers " + ns + "/one object oldObject UpdateOptions")))
				Expect(pods.lines()).To(BeEmpty())
			})

			It("sees a scale as autoscaling/v1 Scale, and can change it", func(ctx context.Context) {
				deployments := clients.AppsV1().Deployments(ns)
				_, err := deployments.Create(ctx, deployment(ns, "web"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				parents := watch[appsv1.Deployment](ctx, on(webhook.OnWrite("apps", "v1", "deployments")), nil)
				seen := watch(ctx, on(webhook.OnUpdate("apps", "v1", "deployments/scale")),
					func(hook string, req *webhook.Request[autoscalingv1.Scale]) error {
						if hook == mutating {
							req.Object.Spec.Replicas = min(req.Object.Spec.Replicas, 5)
						}
						return nil
					})
				scaled, err := deployments.UpdateScale(ctx, "web", &autoscalingv1.Scale{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: autoscalingv1.ScaleSpec{Replicas: 50},
				}, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(scaled.Spec.Replicas).To(BeEquivalentTo(5))
				Expect(deployments.Get(ctx, "web", metav1.GetOptions{})).To(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(5))))
				Expect(seen.lines()).To(Equal(eachHook("UPDATE deployments/scale " + ns + "/web object oldObject UpdateOptions")))
				for i, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}))
					Expect(e.Resource.Group).To(Equal("apps"))
					Expect(e.old.Spec.Replicas).To(BeEquivalentTo(1))
					Expect(e.object.Spec.Replicas).To(BeEquivalentTo([]int{50, 5}[i]))
				}
				Expect(parents.lines()).To(BeEmpty())
			})

			It("sees an eviction as a create, not as a delete", func(ctx context.Context) {
				createPod(ctx, "one")
				pods := bystander(ctx)
				seen := watch[policyv1.Eviction](ctx, on(webhook.OnCreate("", "v1", "pods/eviction")), nil)
				Expect(clients.PolicyV1().Evictions(ns).Evict(ctx, eviction(ns, "one"))).To(Succeed())
				Expect(seen.lines()).To(Equal(eachHook("CREATE pods/eviction " + ns + "/one object CreateOptions")))
				for _, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}))
					Expect(e.object.DeleteOptions.GracePeriodSeconds).To(HaveValue(BeEquivalentTo(0)))
				}
				_, err := clients.CoreV1().Pods(ns).Get(ctx, "one", metav1.GetOptions{})
				Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
				Expect(pods.lines()).To(BeEmpty())
			})

			It("can deny an eviction with 429, which tells the client to try again", func(ctx context.Context) {
				createPod(ctx, "one")
				seen := watch(ctx, on(webhook.OnCreate("", "v1", "pods/eviction")),
					func(hook string, _ *webhook.Request[policyv1.Eviction]) error {
						if hook == validating {
							return apierrors.NewTooManyRequestsError("another Pod is still starting")
						}
						return nil
					})
				err := clients.PolicyV1().Evictions(ns).Evict(ctx, eviction(ns, "one"))
				Expect(err).To(MatchError(apierrors.IsTooManyRequests, "IsTooManyRequests"))
				Expect(err).To(MatchError(ContainSubstring("another Pod is still starting")))
				Expect(seen.lines()).To(Equal(eachHook("CREATE pods/eviction " + ns + "/one object CreateOptions")))
				Expect(clients.CoreV1().Pods(ns).Get(ctx, "one", metav1.GetOptions{})).To(HaveField("DeletionTimestamp", BeNil()))
			})

			It("sees a binding, and its changes are stored in the Pod", func(ctx context.Context) {
				createPod(ctx, "one")
				pods := bystander(ctx)
				seen := watch(ctx, on(webhook.OnCreate("", "v1", "pods/binding")),
					func(hook string, req *webhook.Request[corev1.Binding]) error {
						if hook == mutating {
							metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "bound-by", "hook")
						}
						return nil
					})
				Expect(clients.CoreV1().Pods(ns).Bind(ctx, &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"},
					Target:     corev1.ObjectReference{Kind: "Node", Name: "some-node"},
				}, metav1.CreateOptions{})).To(Succeed())
				Expect(seen.lines()).To(Equal(eachHook("CREATE pods/binding " + ns + "/one object CreateOptions")))
				for _, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Version: "v1", Kind: "Binding"}))
					Expect(e.object.Target.Name).To(Equal("some-node"))
				}
				bound, err := clients.CoreV1().Pods(ns).Get(ctx, "one", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(bound.Spec.NodeName).To(Equal("some-node"))
				Expect(bound.Annotations).To(HaveKeyWithValue("bound-by", "hook"))
				Expect(pods.lines()).To(BeEmpty())
			})

			It("sees a request for a service account token, and can shorten its lifetime", func(ctx context.Context) {
				accounts := clients.CoreV1().ServiceAccounts(ns)
				_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				seen := watch(ctx, on(webhook.OnCreate("", "v1", "serviceaccounts/token")),
					func(hook string, req *webhook.Request[authenticationv1.TokenRequest]) error {
						if hook == mutating {
							req.Object.Spec.ExpirationSeconds = new(int64(600))
						}
						return nil
					})
				token, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{
					Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}, ExpirationSeconds: new(int64(7200))},
				}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(token.Spec.ExpirationSeconds).To(HaveValue(BeEquivalentTo(600)))
				Expect(token.Status.Token).NotTo(BeEmpty())
				Expect(seen.lines()).To(Equal(eachHook("CREATE serviceaccounts/token " + ns + "/robot object CreateOptions")))
				for i, e := range seen.all() {
					Expect(e.Kind).To(Equal(metav1.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}))
					Expect(e.object.Spec.Audiences).To(Equal([]string{"vault"}))
					Expect(e.object.Spec.ExpirationSeconds).To(HaveValue(BeEquivalentTo([]int{7200, 600}[i])))
				}
			})
		})
	}
})

// execute requests an exec as kubectl does and returns the API server's error. The exec always fails,
// because there is no kubelet.
func execute(ctx context.Context, namespace, name string, command ...string) error {
	return clients.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true}, scheme.ParameterCodec).Do(ctx).Error()
}

func eviction(namespace, name string) *policyv1.Eviction {
	return &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: name},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
	}
}

// deployment returns a small valid Deployment of one replica.
func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "").Spec},
		},
	}
}
