// SPDX-License-Identifier: Apache-2.0

package podtolerationrestriction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/gallery/tolerations"
)

// allAllowed reports whether the whitelist covers each toleration.
func allAllowed(list, whitelist []corev1.Toleration) bool {
	for _, t := range list {
		if !slices.ContainsFunc(whitelist, func(allowed corev1.Toleration) bool { return tolerations.Covers(allowed, t) }) {
			return false
		}
	}
	return true
}

// isBestEffort reports whether the Pod has the QoS class BestEffort, according to its status or its resources. If
// spec.resources is set, the resources of the containers are ignored.
func isBestEffort(pod *corev1.Pod) bool {
	switch {
	case pod.Status.QOSClass != "":
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	case pod.Spec.Resources != nil:
		return !hasComputeResources(*pod.Spec.Resources)
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return hasComputeResources(c.Resources)
	})
}

// hasComputeResources reports whether CPU or memory has a request or a limit.
func hasComputeResources(r corev1.ResourceRequirements) bool {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		if list.Cpu().Sign() > 0 || list.Memory().Sign() > 0 {
			return true
		}
	}
	return false
}
