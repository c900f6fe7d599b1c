// SPDX-License-Identifier: Apache-2.0

// Package defaults sets the defaults of built-in objects, as kube-apiserver does when it decodes an object.
package defaults

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Set sets the defaults of obj. It returns false for an unknown type.
func Set(obj runtime.Object) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		defaultPod(o)
	case *appsv1.Deployment:
		defaultDeployment(o)
	case *appsv1.ReplicaSet:
		defaultReplicaSet(o)
	case *appsv1.StatefulSet:
		defaultStatefulSet(o)
	case *appsv1.DaemonSet:
		defaultDaemonSet(o)
	case *batchv1.Job:
		defaultJob(o)
	case *batchv1.CronJob:
		defaultCronJob(o)
	case *corev1.ReplicationController:
		defaultReplicationController(o)
	case *corev1.PodTemplate:
		defaultTemplate(&o.Template)
	case *corev1.Secret:
		defaultSecret(o)
	case *corev1.Service:
		defaultService(o)
	case *corev1.Namespace:
		defaultNamespace(o)
	case *corev1.PersistentVolumeClaim:
		defaultClaim(o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		defaultAutoscaler(o)
	case *storagev1.StorageClass:
		defaultStorageClass(o)
	case *schedulingv1.PriorityClass:
		setDefault(&o.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *rbacv1.RoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		defaultBinding(&o.RoleRef, o.Subjects)
	case *corev1.ConfigMap, *corev1.ServiceAccount, *networkingv1.Ingress, *policyv1.PodDisruptionBudget:
		// no defaults that an encoded object would show
	default:
		return false
	}
	return true
}
