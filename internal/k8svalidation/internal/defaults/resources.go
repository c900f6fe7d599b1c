// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// defaultPodResources completes the pod-level resources, if there are any, from those of the
// containers.
func defaultPodResources(spec *corev1.PodSpec) {
	r := spec.Resources
	if r == nil || len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	for name, limit := range Aggregate(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits }) {
		if _, requested := r.Requests[name]; IsHugePages(name) && !requested {
			addMissing(&r.Limits, name, limit)
		}
	}
	if len(r.Limits) == 0 {
		return
	}
	for name, request := range Aggregate(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			addMissing(&r.Requests, name, request)
		}
	}
	for name, limit := range r.Limits {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || IsHugePages(name) {
			addMissing(&r.Requests, name, limit)
		}
	}
}

// IsHugePages reports whether a resource is huge pages of some size.
func IsHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func addMissing(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = q.DeepCopy()
}

// Aggregate returns the highest total of the containers' resources. The parameter named of is a function that returns
// the requests or the limits of one container. The result is the larger of two sums: regular containers plus sidecars,
// or one init container plus the sidecars started before it.
func Aggregate(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	total, sidecars, start := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		addAll(total, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if IsSidecar(c) {
			addAll(total, of(c))
			addAll(sidecars, of(c))
			raise(start, sidecars)
			continue
		}
		alone := corev1.ResourceList{}
		addAll(alone, of(c))
		addAll(alone, sidecars)
		raise(start, alone)
	}
	raise(total, start)
	return total
}

// IsSidecar reports whether an init container keeps running beside the regular containers.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func addAll(sum, list corev1.ResourceList) {
	for name, q := range list {
		s := sum[name].DeepCopy()
		s.Add(q)
		sum[name] = s
	}
}

func raise(most, list corev1.ResourceList) {
	for name, q := range list {
		if m, ok := most[name]; !ok || q.Cmp(m) > 0 {
			most[name] = q.DeepCopy()
		}
	}
}
