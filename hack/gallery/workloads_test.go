// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

func intOrString(n int) intstr.IntOrString { return intstr.FromInt(n) }

// workloadsOf returns a CREATE of each kind of workload. The Pod template has the spec and the annotations of the Pod.
// A second ReplicationController has no template.
func workloadsOf(pod *corev1.Pod) []*request {
	labels := map[string]string{"app": "shop"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
	ending := *template.DeepCopy()
	ending.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := batchv1.JobSpec{Template: ending}
	meta := func() metav1.ObjectMeta { return pod.ObjectMeta }
	selected := batchv1.JobSpec{Template: ending, Selector: selector, ManualSelector: ptr.To(true)} // otherwise the API server adds the UID
	return []*request{
		on(admission.Create, corev1.SchemeGroupVersion.WithKind("PodTemplate"), "podtemplates", "", &corev1.PodTemplate{ObjectMeta: meta(), Template: template}, nil),
		on(admission.Create, corev1.SchemeGroupVersion.WithKind("ReplicationController"), "replicationcontrollers", "",
			&corev1.ReplicationController{ObjectMeta: meta(), Spec: corev1.ReplicationControllerSpec{Selector: labels, Template: &template}}, nil),
		on(admission.Create, corev1.SchemeGroupVersion.WithKind("ReplicationController"), "replicationcontrollers", "",
			&corev1.ReplicationController{ObjectMeta: meta(), Spec: corev1.ReplicationControllerSpec{Selector: labels}}, nil),
		on(admission.Create, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "replicasets", "",
			&appsv1.ReplicaSet{ObjectMeta: meta(), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, nil),
		on(admission.Create, appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", "",
			&appsv1.Deployment{ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, nil),
		on(admission.Create, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "statefulsets", "",
			&appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{ServiceName: "shop", Selector: selector, Template: template}}, nil),
		on(admission.Create, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "daemonsets", "",
			&appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, nil),
		on(admission.Create, batchv1.SchemeGroupVersion.WithKind("Job"), "jobs", "", &batchv1.Job{ObjectMeta: meta(), Spec: selected}, nil),
		on(admission.Create, batchv1.SchemeGroupVersion.WithKind("CronJob"), "cronjobs", "",
			&batchv1.CronJob{ObjectMeta: meta(), Spec: batchv1.CronJobSpec{Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}}, nil),
	}
}

// workload returns a CREATE or an UPDATE of a random workload from workloadsOf.
func (g *generator) workload(pod *corev1.Pod) *request {
	r := pick(g, workloadsOf(pod)...)
	if g.oneIn(2) {
		return r
	}
	r.operation, r.old = admission.Update, r.object.DeepCopyObject()
	if g.oneIn(3) {
		r.subresource = "status"
	}
	changed := r.object.(metav1.Object)
	changed.SetLabels(map[string]string{"a": "b"})
	return r
}
