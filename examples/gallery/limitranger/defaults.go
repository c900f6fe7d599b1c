// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation on a Pod describes the defaults that were set last, by one LimitRange in one call.
const Annotation = "kubernetes.io/limit-ranger"

// setDefaults gives the containers of the Pod the defaults of the LimitRange, unless they have values of their own.
func setDefaults(r *corev1.LimitRange, pod *corev1.Pod) {
	var defaults corev1.ResourceRequirements
	for _, limit := range r.Spec.Limits {
		if limit.Type == corev1.LimitTypeContainer {
			defaults.Requests = overlay(defaults.Requests, limit.DefaultRequest)
			defaults.Limits = overlay(defaults.Limits, limit.Default)
		}
	}
	var set []string
	for i := range pod.Spec.Containers {
		set = append(set, setContainer(&pod.Spec.Containers[i], "container", defaults)...)
	}
	for i := range pod.Spec.InitContainers {
		set = append(set, setContainer(&pod.Spec.InitContainers[i], "init container", defaults)...)
	}
	if len(set) > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, Annotation, "LimitRanger plugin set: "+strings.Join(set, "; "))
	}
}

// overlay returns the union of both lists. The quantities of over take precedence.
func overlay(under, over corev1.ResourceList) corev1.ResourceList {
	both := corev1.ResourceList{}
	maps.Copy(both, under)
	maps.Copy(both, over)
	return both
}

// setContainer sets the defaults of one container, and returns a description of each list that it has changed.
func setContainer(c *corev1.Container, kind string, defaults corev1.ResourceRequirements) (set []string) {
	if names := addMissing(&c.Resources.Requests, defaults.Requests); len(names) > 0 {
		set = append(set, strings.Join(names, ", ")+" request for "+kind+" "+c.Name)
	}
	if names := addMissing(&c.Resources.Limits, defaults.Limits); len(names) > 0 {
		set = append(set, strings.Join(names, ", ")+" limit for "+kind+" "+c.Name)
	}
	return set
}

// addMissing adds each default for which the list has no quantity. It returns the sorted names of the resources that it
// added.
func addMissing(list *corev1.ResourceList, defaults corev1.ResourceList) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, ok := (*list)[name]; ok {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = defaults[name].DeepCopy()
		names = append(names, string(name))
	}
	return names
}
