// SPDX-License-Identifier: Apache-2.0

package podtolerationrestriction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// merge returns the tolerations without those that another one covers. Of equal ones it keeps the first.
func merge(all []corev1.Toleration) []corev1.Toleration {
	var merged []corev1.Toleration
	for i, t := range all {
		covered := func(other corev1.Toleration) bool { return covers(other, t) }
		coveredAndNotEqual := func(other corev1.Toleration) bool { return !equal(other, t) && covers(other, t) }
		if !slices.ContainsFunc(merged, covered) && !slices.ContainsFunc(all[i+1:], coveredAndNotEqual) {
			merged = append(merged, t)
		}
	}
	return merged
}

// allAllowed reports whether the whitelist covers each toleration.
func allAllowed(tolerations, whitelist []corev1.Toleration) bool {
	for _, t := range tolerations {
		if !slices.ContainsFunc(whitelist, func(allowed corev1.Toleration) bool { return covers(allowed, t) }) {
			return false
		}
	}
	return true
}

// covers reports whether wide tolerates every taint that t tolerates, for at least as long.
func covers(wide, t corev1.Toleration) bool {
	if equal(wide, t) {
		return true
	}
	everyKey := wide.Key == "" && wide.Operator == corev1.TolerationOpExists
	if wide.Key != t.Key && !everyKey || wide.Effect != t.Effect && wide.Effect != "" {
		return false
	}
	if limit := wide.TolerationSeconds; wide.Effect == corev1.TaintEffectNoExecute && limit != nil {
		if t.TolerationSeconds == nil || *t.TolerationSeconds > *limit {
			return false
		}
	}
	switch wide.Operator {
	case corev1.TolerationOpEqual, "": // empty means Equal, but only here: the original asks the same of t
		return t.Operator == corev1.TolerationOpEqual && t.Value == wide.Value
	case corev1.TolerationOpExists:
		return true
	}
	return false // the original does not compare numbers
}

func equal(a, b corev1.Toleration) bool { return equality.Semantic.DeepEqual(a, b) }

// isBestEffort reports whether the Pod has the QoS class BestEffort, by its status or by its resources. Those of the Pod
// replace those of its containers.
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
