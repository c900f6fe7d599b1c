// SPDX-License-Identifier: Apache-2.0

// Package k8svalidation does to objects of built-in kinds what kube-apiserver does between two calls
// of webhooks and before it stores: defaulting and validation. The API server's own code for
// this is in k8s.io/kubernetes, which is not made for being imported; here is the part that
// webhooks meet, for Pod, the kinds with a pod template (Deployment, ReplicaSet, StatefulSet,
// DaemonSet, Job, CronJob, ReplicationController, PodTemplate), and ConfigMap, Secret, Service,
// Namespace, ServiceAccount, PersistentVolumeClaim, Ingress and PodDisruptionBudget, all in their v1
// types, and HorizontalPodAutoscaler in v2.
//
// A test holds it against a real API server: what is refused here is refused there.
package k8svalidation

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Default fills in what kube-apiserver fills in when it decodes obj: the defaults of the v1
// types, and what its way through the internal types adds or takes away (serviceAccount follows
// serviceAccountName, stringData becomes data, an owner is there once). It reports false for a
// type it does not know.
//
// What is set later is not part of it: by admission plugins (the default ServiceAccount and its
// token volume, tolerations of every Pod, priority), and by what prepares an object for storage
// (status, generation, a Job's selector, a Service's addresses).
func Default(obj runtime.Object) bool {
	if m, _ := named(obj); m != nil && len(m.OwnerReferences) > 1 {
		m.OwnerReferences = distinct(m.OwnerReferences)
	}
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
	case *corev1.ConfigMap, *corev1.ServiceAccount, *networkingv1.Ingress, *policyv1.PodDisruptionBudget:
		// no defaults that an encoded object would show
	default:
		return false
	}
	return true
}

// Validate returns what kube-apiserver would refuse if obj were created, with the paths it
// would name, or more exact ones. Of what it would fill in (see Default) nothing need be there;
// metadata.name may be missing where generateName is there, and metadata.namespace always, as it
// is in the request.
//
// It covers, for all kinds: names, labels, annotations, owner references, finalizers.
// For pods and templates: names and duplicates of containers (across all three lists), volumes,
// ports (names, numbers, protocols, host ports), mounts and devices (missing volumes, duplicate
// and empty paths), environment, probes and lifecycle handlers, resources, security contexts,
// what an operating system lacks, tolerations, affinity, spread constraints, DNS, hosts.
// For kinds with a template: numbers, strategies, selectors that do not match the template, and
// what the kind forbids in it. For the others: what their fields alone show.
//
// It does not cover: options for Windows and SELinux, annotations with a meaning to pods, old
// volume types of cloud providers, cron schedules, pod failure and success policies of Jobs, IP
// families of Services, and whatever takes other objects or the cluster's settings to decide.
// When in doubt it does not refuse. For a type it does not know it returns nothing.
func Validate(obj runtime.Object) field.ErrorList {
	var c checker
	c.object(obj)
	return c.errs
}

// Knows reports whether Default and Validate have anything to say of objects of the type.
func Knows(obj runtime.Object) bool {
	m, _ := named(obj)
	return m != nil
}

// PodTemplate returns the metadata and spec of the pod template inside obj, or those of obj
// itself where it is a Pod. Both are nil for a kind that has none.
func PodTemplate(obj runtime.Object) (*metav1.ObjectMeta, *corev1.PodSpec) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return &pod.ObjectMeta, &pod.Spec
	}
	if t := template(obj); t != nil {
		return &t.ObjectMeta, &t.Spec
	}
	return nil, nil
}

func template(obj runtime.Object) *corev1.PodTemplateSpec {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	case *corev1.PodTemplate:
		return &o.Template
	}
	return nil
}
