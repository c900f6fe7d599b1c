// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// templated maps the name of every built-in kind that has a Pod template to an object of that kind.
func templated(ns string) map[string]client.Object {
	labels := map[string]string{"app": "web"}
	meta := metav1.ObjectMeta{Namespace: ns, Name: "web"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	once := *template.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	return map[string]client.Object{
		"Pod":                   &corev1.Pod{ObjectMeta: meta, Spec: template.Spec},
		"PodTemplate":           &corev1.PodTemplate{ObjectMeta: meta, Template: template},
		"ReplicationController": &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: labels, Template: &template}},
		"ReplicaSet":            &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		"Deployment":            &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		"StatefulSet":           &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		"DaemonSet":             &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		"Job":                   &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: once}},
		"CronJob": &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once}},
		}},
	}
}

// podSpec returns the Pod spec of an object, and its path.
func podSpec(object client.Object) (spec *corev1.PodSpec, path string) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec, "spec"
	case *corev1.PodTemplate:
		return &o.Template.Spec, "template.spec"
	case *corev1.ReplicationController:
		return &o.Spec.Template.Spec, "spec.template.spec"
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec, "spec.template.spec"
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, "spec.template.spec"
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec, "spec.template.spec"
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec, "spec.template.spec"
	case *batchv1.Job:
		return &o.Spec.Template.Spec, "spec.template.spec"
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec, "spec.jobTemplate.spec.template.spec"
	}
	return nil, ""
}

var _ = Describe("a hook for Pod templates", func() {
	for _, version := range reviewVersions {
		It("with "+version+" reviews changes and denies the template of every built-in kind", func(ctx context.Context) {
			ns := newNamespace(ctx)
			reg := admissionregistrationv1.ValidatingWebhook{NamespaceSelector: only(ns), AdmissionReviewVersions: []string{version}}
			m := asMutating(reg)
			m.Name, reg.Name = "mutating.templates.example.com", "validating.templates.example.com"
			install(ctx,
				webhook.MutatingPodTemplates(m, func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
					req.Object.Spec.SchedulerName = "special"
					return nil
				}),
				webhook.ValidatingPodTemplates(reg, func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
					if req.Object.Spec.HostNetwork {
						return webhook.DenyInvalid(field.ErrorList{field.Forbidden(req.FieldPath().Child("spec", "hostNetwork"), "use a Service")})
					}
					return nil
				}))
			objects := templated(ns)
			Expect(objects).To(HaveLen(9))
			cluster, err := client.New(config, client.Options{})
			Expect(err).NotTo(HaveOccurred())
			for kind, object := range objects {
				By(kind)
				denied, ok := object.DeepCopyObject().(client.Object)
				Expect(ok).To(BeTrue())
				spec, path := podSpec(denied)
				spec.HostNetwork = true
				err := cluster.Create(ctx, denied)
				Expect(err).To(MatchError(ContainSubstring(path + ".hostNetwork: Forbidden: use a Service")))

				Expect(cluster.Create(ctx, object)).To(Succeed())
				spec, _ = podSpec(object)
				if kind != "ReplicaSet" && kind != "ReplicationController" { // the hook has no rules for these kinds
					Expect(spec.SchedulerName).To(Equal("special"))
				}
				labelled, ok := object.DeepCopyObject().(client.Object)
				Expect(ok).To(BeTrue())
				labelled.SetLabels(map[string]string{"changed": "yes"})
				if kind != "Pod" { // the labels of a Pod are part of its template
					Expect(cluster.Update(ctx, labelled)).To(Succeed())
					object.SetResourceVersion(labelled.GetResourceVersion())
				}

				if _, isJob := object.(*batchv1.Job); kind == "Pod" || isJob {
					continue // their templates are immutable
				}
				spec.HostNetwork = true
				Expect(cluster.Update(ctx, object)).To(MatchError(ContainSubstring(path + ".hostNetwork: Forbidden: use a Service")))
			}
		})
	}

	It("does not touch objects that are older than the hook", func(ctx context.Context) {
		ns := newNamespace(ctx)
		cluster, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		objects := templated(ns)
		for _, object := range objects {
			object.SetFinalizers([]string{"example.com/hold"})
			Expect(cluster.Create(ctx, object)).To(Succeed())
		}
		install(ctx,
			webhook.MutatingPodTemplates(admissionregistrationv1.MutatingWebhook{Name: "newer.templates.example.com", NamespaceSelector: only(ns)},
				func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
					req.Object.Spec.SchedulerName = "special"
					return nil
				}),
			webhook.ValidatingPodTemplates(admissionregistrationv1.ValidatingWebhook{Name: "stricter.templates.example.com", NamespaceSelector: only(ns)},
				func(context.Context, *webhook.Request[corev1.PodTemplateSpec]) error {
					return webhook.Deny("no Pods here")
				}))
		for kind, object := range objects {
			By(kind)
			object.SetFinalizers(nil)
			Expect(cluster.Update(ctx, object)).To(Succeed())
			spec, _ := podSpec(object)
			Expect(spec.SchedulerName).To(Equal("default-scheduler"))
		}
	})

	It("sees the ephemeral containers of a Pod", func(ctx context.Context) {
		ns := newNamespace(ctx)
		reg := admissionregistrationv1.ValidatingWebhook{Name: "debug.templates.example.com", NamespaceSelector: only(ns)}
		install(ctx, webhook.ValidatingPodTemplates(reg, func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
			for _, c := range req.Object.Spec.EphemeralContainers {
				return webhook.Denyf("no %s here", c.Name)
			}
			return nil
		}))
		created, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "web"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		created.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "sh:1"}}}
		_, err = clients.CoreV1().Pods(ns).UpdateEphemeralContainers(ctx, "web", created, metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("no debug here")))
	})
})

var _ = Describe("a hook that admits objects that are being deleted", func() {
	It("lets their finalizers go, and still checks others", func(ctx context.Context) {
		ns := newNamespace(ctx)
		reg := admissionregistrationv1.ValidatingWebhook{Name: "maps.deleting.example.com", NamespaceSelector: only(ns), Rules: webhook.Rules(webhook.OnUpdate("", "v1", "configmaps"))}
		install(ctx, webhook.Validating(reg, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
			return webhook.Denyf("%s cannot be changed", req.Name)
		}).WithDeletingAdmitted())
		maps := clients.CoreV1().ConfigMaps(ns)
		held := configMap(ns, "held")
		held.Finalizers = []string{"example.com/hold"}
		held, err := maps.Create(ctx, held, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		held.Finalizers = nil
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("held cannot be changed")))
		forged := held.DeepCopy()
		forged.DeletionTimestamp = &metav1.Time{Time: held.CreationTimestamp.Time}
		_, err = maps.Update(ctx, forged, metav1.UpdateOptions{})
		Expect(err).To(HaveOccurred()) // from the API server itself

		Expect(maps.Delete(ctx, "held", metav1.DeleteOptions{})).To(Succeed())
		held, err = maps.Get(ctx, "held", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		held.Finalizers = nil
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})
})
