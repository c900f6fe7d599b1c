// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate returns the errors for which kube-apiserver would reject the update of old to obj: errors in obj
// itself and changes to immutable fields. Both objects must have the same type and have their defaults set. It is for
// updates of the main resource, not of a subresource.
//
// An update of a Pod's spec may change images, shorten activeDeadlineSeconds, add tolerations and remove
// schedulingGates. While the Pod has gates, nodeSelector and node affinity may change too. A Job's template may change
// in some fields while the Job is suspended. Other templates may change. Selectors may not.
func ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	m, _ := named(obj)
	oldMeta, _ := named(old)
	c := checker{isUpdate: true}
	if m == nil || oldMeta == nil {
		if reflect.TypeOf(obj) == reflect.TypeOf(old) {
			c.updateOther(obj, old)
		}
		return c.errs
	}
	c.metadataUpdate(m, oldMeta)
	c.content(obj)
	if reflect.TypeOf(obj) == reflect.TypeOf(old) {
		c.update(obj, old)
	}
	return c.errs
}

func (c *checker) metadataUpdate(m, old *metav1.ObjectMeta) {
	at := metadataPath
	c.immutable(at, "name", m.Name, old.Name)
	if m.Namespace != "" && old.Namespace != "" {
		c.immutable(at, "namespace", m.Namespace, old.Namespace)
	}
	if m.UID != "" && old.UID != "" {
		c.immutable(at, "uid", m.UID, old.UID)
	}
	c.labelsAndAnnotations(at, m)
	c.references(at, m)
	if old.DeletionTimestamp == nil {
		return
	}
	var had seen[string]
	for _, name := range old.Finalizers {
		had.add(name)
	}
	for i, name := range m.Finalizers {
		if !had.has(name) {
			c.forbidden(at.Child("finalizers").Index(i), "no new finalizers can be added if the object is being deleted")
		}
	}
}

func (c *checker) immutable(at *field.Path, child string, v, old any) {
	if !equality.Semantic.DeepEqual(v, old) {
		c.invalid(at.Child(child), v, "field is immutable")
	}
}

// update checks the changes of one kind. Both objects have the same type.
func (c *checker) update(obj, old runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		old := old.(*corev1.Pod)
		(&podUpdateCheck{c, o, old}).check()
	case *appsv1.Deployment:
		old := old.(*appsv1.Deployment)
		c.immutable(specPath, "selector", o.Spec.Selector, old.Spec.Selector)
	case *appsv1.ReplicaSet:
		old := old.(*appsv1.ReplicaSet)
		c.immutable(specPath, "selector", o.Spec.Selector, old.Spec.Selector)
	case *appsv1.DaemonSet:
		old := old.(*appsv1.DaemonSet)
		c.immutable(specPath, "selector", o.Spec.Selector, old.Spec.Selector)
	case *appsv1.StatefulSet:
		old := old.(*appsv1.StatefulSet)
		checkStatefulSetUpdate(c, &o.Spec, &old.Spec)
	case *batchv1.Job:
		old := old.(*batchv1.Job)
		checkJobUpdate(c, &o.Spec, &old.Spec)
	case *corev1.ConfigMap:
		old := old.(*corev1.ConfigMap)
		checkConfigMapUpdate(c, o, old)
	case *corev1.Secret:
		old := old.(*corev1.Secret)
		checkSecretUpdate(c, o, old)
	case *corev1.Service:
		old := old.(*corev1.Service)
		checkServiceUpdate(c, &o.Spec, &old.Spec)
	case *autoscalingv2.HorizontalPodAutoscaler:
		if old := old.(*autoscalingv2.HorizontalPodAutoscaler); o.Spec.ScaleTargetRef.APIVersion != old.Spec.ScaleTargetRef.APIVersion {
			checkScaleTargetGroup(c, &o.Spec.ScaleTargetRef)
		}
	case *corev1.PersistentVolumeClaim:
		old := old.(*corev1.PersistentVolumeClaim)
		checkClaimUpdate(c, &o.Spec, &old.Spec)
	}
}

func checkStatefulSetUpdate(c *checker, spec, old *appsv1.StatefulSetSpec) {
	c.immutable(specPath, "serviceName", spec.ServiceName, old.ServiceName)
	c.immutable(specPath, "selector", spec.Selector, old.Selector)
	c.immutable(specPath, "podManagementPolicy", spec.PodManagementPolicy, old.PodManagementPolicy)
	c.immutable(specPath, "volumeClaimTemplates", spec.VolumeClaimTemplates, old.VolumeClaimTemplates)
}

func checkJobUpdate(c *checker, spec, old *batchv1.JobSpec) {
	if !isIndexed(spec) {
		c.immutable(specPath, "completions", spec.Completions, old.Completions)
	}
	c.immutable(specPath, "selector", spec.Selector, old.Selector)
	c.immutable(specPath, "completionMode", spec.CompletionMode, old.CompletionMode)
	c.immutable(specPath, "podFailurePolicy", spec.PodFailurePolicy, old.PodFailurePolicy)
	c.immutable(specPath, "backoffLimitPerIndex", spec.BackoffLimitPerIndex, old.BackoffLimitPerIndex)
	c.immutable(specPath, "managedBy", spec.ManagedBy, old.ManagedBy)
	c.immutable(specPath, "successPolicy", spec.SuccessPolicy, old.SuccessPolicy)
	was := &old.Template
	if old.Suspend != nil && *old.Suspend {
		was = suspended(&spec.Template, was)
	}
	c.immutable(specPath, "template", &spec.Template, was)
}

// suspended returns the old template with those changes of t that a suspended Job allows. Some clusters allow fewer
// changes.
func suspended(t, old *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	was := old.DeepCopy()
	was.Labels, was.Annotations = t.Labels, t.Annotations
	was.Spec.NodeSelector, was.Spec.Tolerations, was.Spec.SchedulingGates = t.Spec.NodeSelector, t.Spec.Tolerations, t.Spec.SchedulingGates
	takeNodeAffinity(&was.Spec, &t.Spec)
	takeResources(was.Spec.Containers, t.Spec.Containers)
	takeResources(was.Spec.InitContainers, t.Spec.InitContainers)
	return was
}

// takeNodeAffinity replaces the node affinity of spec with that of other, so that a comparison
// finds only other differences. It modifies the affinity of spec, which must be a deep copy.
func takeNodeAffinity(spec, other *corev1.PodSpec) {
	if other.Affinity != nil && spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity == nil {
		return
	}
	spec.Affinity.NodeAffinity = nil
	if other.Affinity != nil {
		spec.Affinity.NodeAffinity = other.Affinity.NodeAffinity
	} else if *spec.Affinity == (corev1.Affinity{}) {
		spec.Affinity = nil
	}
}

func takeResources(containers, others []corev1.Container) {
	for i := range min(len(containers), len(others)) {
		containers[i].Resources = others[i].Resources
	}
}

func isLocked(immutable *bool) bool { return immutable != nil && *immutable }

func checkConfigMapUpdate(c *checker, o, old *corev1.ConfigMap) {
	if !isLocked(old.Immutable) {
		return
	}
	c.locked("immutable", isLocked(o.Immutable), true)
	c.locked("data", o.Data, old.Data)
	c.locked("binaryData", o.BinaryData, old.BinaryData)
}

func checkSecretUpdate(c *checker, o, old *corev1.Secret) {
	c.immutable(nil, "type", o.Type, old.Type)
	if isLocked(old.Immutable) {
		c.locked("immutable", isLocked(o.Immutable), true)
		c.locked("data", o.Data, old.Data)
	}
}

func (c *checker) locked(child string, v, old any) {
	if !equality.Semantic.DeepEqual(v, old) {
		c.forbidden(field.NewPath(child), "field is immutable when `immutable` is set")
	}
}

// checkServiceUpdate checks a Service. An omitted cluster IP keeps its value.
func checkServiceUpdate(c *checker, spec, old *corev1.ServiceSpec) {
	external := corev1.ServiceTypeExternalName
	if spec.Type != external && old.Type != external && spec.ClusterIP != "" && old.ClusterIP != "" && spec.ClusterIP != old.ClusterIP {
		c.invalid(specPath.Child("clusterIPs").Index(0), spec.ClusterIP, "may not change once set")
	}
	if spec.Type == old.Type { // otherwise, the API server drops some of the fields that depend on the type
		checkServiceType(c, spec)
	}
	balancer := corev1.ServiceTypeLoadBalancer
	if spec.Type == balancer && old.Type == balancer && !equality.Semantic.DeepEqual(spec.LoadBalancerClass, old.LoadBalancerClass) {
		c.invalid(specPath.Child("loadBalancerClass"), spec.LoadBalancerClass, "may not change once set")
	}
}

// checkClaimUpdate checks a PersistentVolumeClaim. It does not check sizes and classes, because their rules depend on
// whether the claim is bound.
func checkClaimUpdate(c *checker, spec, old *corev1.PersistentVolumeClaimSpec) {
	was := old.DeepCopy()
	was.Resources.Requests = spec.Resources.Requests
	was.VolumeAttributesClassName = spec.VolumeAttributesClassName
	if was.VolumeName == "" {
		was.VolumeName = spec.VolumeName
	}
	if was.StorageClassName == nil {
		was.StorageClassName = spec.StorageClassName
	}
	if !equality.Semantic.DeepEqual(spec, was) {
		c.forbidden(specPath, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")
	}
}
