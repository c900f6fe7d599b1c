// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// object validates an object for a create.
func (c *checker) object(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		c.pod(o)
		return
	case *batchv1.CronJob:
		checkNewCronJob(c, o)
	}
	if m, rule := named(obj); m != nil {
		c.metadata(m, rule)
		c.content(obj)
	}
}

// named returns the metadata of an object and the rule for the names of its kind. It returns nil for an unknown type.
func named(obj runtime.Object) (*metav1.ObjectMeta, nameRule) {
	rule := subdomainName
	switch obj.(type) {
	case *appsv1.StatefulSet, *corev1.Service, *corev1.Namespace:
		rule = labelName
	case *corev1.ReplicationController:
		rule = nameRule{bad: badSubdomain}
	case *policyv1.PodDisruptionBudget:
		rule = nameRule{bad: content.IsPathSegmentName}
	case *corev1.Pod, *corev1.PodTemplate, *corev1.ConfigMap, *corev1.Secret, *corev1.ServiceAccount, *corev1.PersistentVolumeClaim,
		*appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.DaemonSet, *batchv1.Job, *batchv1.CronJob,
		*networkingv1.Ingress, *autoscalingv2.HorizontalPodAutoscaler:
	default:
		return nil, nameRule{}
	}
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta), rule
}

// content validates everything except the metadata.
func (c *checker) content(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		c.podSpec(o)
	case *appsv1.Deployment:
		checkDeployment(c, o)
	case *appsv1.ReplicaSet:
		checkReplicaSet(c, o)
	case *appsv1.StatefulSet:
		checkStatefulSet(c, o)
	case *appsv1.DaemonSet:
		checkDaemonSet(c, o)
	case *batchv1.Job:
		checkJob(c, o)
	case *batchv1.CronJob:
		checkCronJob(c, o)
	case *corev1.ReplicationController:
		checkReplicationController(c, o)
	case *corev1.PodTemplate:
		c.template(field.NewPath("template"), &o.Template, false)
	case *corev1.ConfigMap:
		checkConfigMap(c, o)
	case *corev1.Secret:
		checkSecret(c, o)
	case *corev1.Service:
		checkService(c, o)
	case *corev1.Namespace:
		checkNamespace(c, o)
	case *corev1.PersistentVolumeClaim:
		checkClaimSpec(c, specPath, &o.Spec)
	case *networkingv1.Ingress:
		checkIngress(c, o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		checkAutoscaler(c, o)
	case *policyv1.PodDisruptionBudget:
		checkDisruptionBudget(c, o)
	}
}
