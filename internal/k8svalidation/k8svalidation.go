// SPDX-License-Identifier: Apache-2.0

// Package k8svalidation sets the defaults of built-in objects and validates them, as kube-apiserver does between
// webhooks and before it stores an object. The API server's own code is in k8s.io/kubernetes, which other modules
// cannot import. This package reimplements the rules that webhook authors are likely to meet. It knows the v1 types of
// Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, ReplicationController, PodTemplate, ConfigMap,
// Secret, Service, Namespace, ServiceAccount, PersistentVolumeClaim, Ingress and PodDisruptionBudget, and
// HorizontalPodAutoscaler in v2.
//
// A test compares the package with a real API server, which must reject every object that this package rejects.
package k8svalidation

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/k8svalidation/internal/defaults"
)

// Default sets the defaults that kube-apiserver sets when it decodes obj. It also makes the changes that the
// conversion to internal types makes: serviceAccount follows serviceAccountName, stringData becomes data, and
// duplicate owners are dropped. It returns false for an unknown type.
//
// It does not set what the API server sets later: in admission plugins (the default ServiceAccount and its token
// volume, tolerations, priority), and before storage (status, generation, a Job's selector, a Service's addresses).
func Default(obj runtime.Object) bool {
	if m, _ := named(obj); m != nil && len(m.OwnerReferences) > 1 {
		m.OwnerReferences = distinct(m.OwnerReferences)
	}
	return defaults.Set(obj)
}

// Validate returns the errors for which kube-apiserver would reject the creation of obj. The paths are those of the
// API server, or more exact ones. Fields that Default sets may be missing. metadata.name may be missing if
// generateName is set, and metadata.namespace may always be missing, because the request has it.
//
// For all kinds it covers names, labels, annotations, owner references and finalizers. For Pods and templates it
// covers names and duplicates of containers, volumes, ports, mounts, devices, environment, probes, lifecycle handlers,
// resources, security contexts, fields that an operating system lacks, tolerations, affinity, spread constraints, DNS
// and hosts. For kinds with a template it covers numbers, strategies, selectors that do not match the template, and
// template fields that the kind forbids. For other kinds it covers rules that need no other object.
//
// It does not cover options for Windows and SELinux, Pod annotations with a meaning, old volume types of cloud
// providers, cron schedules, pod failure and success policies of Jobs, IP families of Services, and rules that need
// other objects or cluster settings. In doubt it accepts. It returns nothing for an unknown type.
func Validate(obj runtime.Object) field.ErrorList {
	var c checker
	c.object(obj)
	return c.errs
}

// Knows reports whether Default and Validate support the type of obj.
func Knows(obj runtime.Object) bool {
	m, _ := named(obj)
	return m != nil
}

// PodTemplate returns the metadata and the spec of the pod template in obj, or of obj itself if it is a Pod. Both
// are nil for a kind without a template.
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
