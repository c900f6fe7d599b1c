// SPDX-License-Identifier: Apache-2.0

// Package strategy prepares objects of built-in types for storage, between mutating and validating webhooks, as
// the strategies of the API server do.
package strategy

import (
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/k8svalidation"
)

// The functions in this file copy the strategies of the API server's own types. The packages of the originals cannot
// be imported.

// Has reports whether this package prepares objects of the kind.
func Has(kind schema.GroupVersionKind) bool {
	switch kind.Group {
	case "authentication.k8s.io", "authorization.k8s.io", "apiextensions.k8s.io":
		return false
	}
	return BuiltIn().Recognizes(kind)
}

// PrepareForCreate sets the fields that the API server sets when it creates an object, and resets the status.
func PrepareForCreate(kind schema.GroupVersionKind, obj runtime.Object, m metav1.Object) {
	if k8svalidation.CountsChanges(kind.GroupKind()) {
		m.SetGeneration(1)
	}
	qos := corev1.PodQOSClass("")
	if pod, ok := obj.(*corev1.Pod); ok {
		qos = podQOS(pod)
	}
	if status := Field(obj, "Status"); status.IsValid() && kind.GroupKind() != (schema.GroupKind{Kind: "Node"}) {
		status.SetZero()
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Status.Phase, o.Status.QOSClass = corev1.PodPending, qos
		gated(o)
	case *corev1.Namespace:
		o.Status.Phase = corev1.NamespaceActive
		o.Spec.Finalizers = withFinalizer(o.Spec.Finalizers)
	case *corev1.PersistentVolume:
		now := metav1.Now()
		o.Status.Phase, o.Status.LastPhaseTransitionTime = corev1.VolumePending, &now
	case *corev1.PersistentVolumeClaim:
		sources(&o.Spec, nil)
	case *corev1.ServiceAccount:
		onlyNames(o)
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, max(1, templateGeneration(o)))
	case *batchv1.Job:
		selectOwnPods(o)
	}
}

// PrepareForUpdate resets and sets the fields that the API server manages when an object or subresource is updated.
func PrepareForUpdate(kind schema.GroupVersionKind, subresource string, obj, old runtime.Object, m, oldMeta metav1.Object) {
	switch subresource {
	case "":
	case "status":
		prepareForStatus(obj, old, m, oldMeta)
		return
	default:
		return
	}
	if status := Field(obj, "Status"); status.IsValid() {
		status.Set(Field(old, "Status"))
	}
	switch o := obj.(type) {
	case *corev1.Namespace:
		o.Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
	case *corev1.Secret:
		if o.Type == "" {
			o.Type = old.(*corev1.Secret).Type
		}
	case *corev1.PersistentVolumeClaim:
		before := old.(*corev1.PersistentVolumeClaim)
		sources(&o.Spec, &before.Spec)
	case *corev1.ServiceAccount:
		onlyNames(o)
	case *appsv1.DaemonSet:
		before := old.(*appsv1.DaemonSet)
		n := templateGeneration(before)
		if !apiequality.Semantic.DeepEqual(o.Spec.Template, before.Spec.Template) {
			n++
		}
		setTemplateGeneration(o, n)
	}
	if k8svalidation.CountsChanges(kind.GroupKind()) && counts(obj, old, m, oldMeta) {
		m.SetGeneration(oldMeta.GetGeneration() + 1)
	}
}

// counts reports whether an update increments the generation.
func counts(obj, old runtime.Object, m, oldMeta metav1.Object) bool {
	differ := func(name string) bool {
		return !apiequality.Semantic.DeepEqual(Field(obj, name).Interface(), Field(old, name).Interface())
	}
	switch obj.(type) {
	case *appsv1.Deployment: // the Deployment's annotations are copied to its ReplicaSets
		return differ("Spec") || !apiequality.Semantic.DeepEqual(m.GetAnnotations(), oldMeta.GetAnnotations())
	case *corev1.PodTemplate:
		return differ("Template")
	}
	switch {
	case Field(obj, "Spec").IsValid():
		return differ("Spec")
	case Field(obj, "Webhooks").IsValid():
		return differ("Webhooks")
	case Field(obj, "Endpoints").IsValid(): // an EndpointSlice
		return differ("AddressType") || differ("Endpoints") || differ("Ports") || !apiequality.Semantic.DeepEqual(m.GetLabels(), oldMeta.GetLabels())
	}
	return false
}

// prepareForStatus resets everything except the status and metadata, for an update of the status.
func prepareForStatus(obj, old runtime.Object, m, oldMeta metav1.Object) {
	if spec := Field(obj, "Spec"); spec.IsValid() {
		spec.Set(Field(old, "Spec"))
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		o.OwnerReferences, o.DeletionTimestamp = oldMeta.GetOwnerReferences(), nil
		if o.Status.QOSClass == "" {
			o.Status.QOSClass = old.(*corev1.Pod).Status.QOSClass
		}
	case *appsv1.Deployment:
		m.SetLabels(oldMeta.GetLabels())
	}
}

// Canonicalize sets the label kubernetes.io/metadata.name of a Namespace. The API server does this after validation.
func Canonicalize(obj runtime.Object) {
	if o, ok := obj.(*corev1.Namespace); ok && o.Labels[corev1.LabelMetadataName] != o.Name {
		o.Labels = with(o.Labels, corev1.LabelMetadataName, o.Name)
	}
}

// Field returns the named field of an object's struct.
func Field(obj runtime.Object, name string) reflect.Value {
	return reflect.Indirect(reflect.ValueOf(obj)).FieldByName(name)
}

func templateGeneration(o *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(o.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(o *appsv1.DaemonSet, n int64) {
	o.Annotations = with(o.Annotations, appsv1.DeprecatedTemplateGeneration, strconv.FormatInt(n, 10))
}
