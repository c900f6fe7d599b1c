// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// A workload creates the Pods of a Service.
type workload struct {
	metav1.ObjectMeta
	kind     string
	replicas int32 // -1 if the number depends on the nodes
	template corev1.PodTemplateSpec
}

func (w workload) String() string { return w.kind + " " + w.Namespace + "/" + w.Name }

// workloadsOf returns the known workloads whose Pods a Service selects.
func (s *Snapshot) workloadsOf(service *corev1.Service) []workload {
	var all []workload
	for _, object := range s.Workloads {
		var w workload
		switch o := object.(type) {
		case *appsv1.Deployment:
			w = workload{o.ObjectMeta, "Deployment", ptr.Deref(o.Spec.Replicas, 1), o.Spec.Template}
		case *appsv1.StatefulSet:
			w = workload{o.ObjectMeta, "StatefulSet", ptr.Deref(o.Spec.Replicas, 1), o.Spec.Template}
		case *appsv1.DaemonSet:
			w = workload{o.ObjectMeta, "DaemonSet", -1, o.Spec.Template}
		default:
			continue
		}
		if w.Namespace == service.Namespace && len(service.Spec.Selector) > 0 &&
			labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(w.template.Labels)) {
			all = append(all, w)
		}
	}
	return all
}
