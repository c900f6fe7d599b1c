// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// makeValid changes the objects of a request so that the API server's validation accepts most of them. Most of the
// fields that the admission controllers check stay as they are.
func (r *request) makeValid() {
	for _, object := range []runtime.Object{r.object, r.old} {
		switch o := object.(type) {
		case *corev1.Pod:
			if o != nil {
				ephemeral := o.Spec.EphemeralContainers
				makePodValid(o)
				if r.subresource == "ephemeralcontainers" && object == r.object {
					o.Spec.EphemeralContainers = ephemeral
				}
			}
		case *corev1.PersistentVolumeClaim:
			if o != nil {
				o.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
				if o.Spec.Resources.Requests.Storage().Sign() <= 0 {
					o.Spec.Resources.Requests = quantities(corev1.ResourceStorage, "1Gi")
				}
			}
		case *corev1.PersistentVolume:
			if o != nil {
				o.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
				o.Spec.Capacity = quantities(corev1.ResourceStorage, "1Gi")
				o.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/data"}
			}
		case *corev1.Service:
			if o != nil {
				o.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
				if o.Spec.Type == corev1.ServiceTypeExternalName {
					o.Spec.ExternalName = "shop.example.com"
				}
			}
		case *networkingv1.Ingress:
			if o != nil {
				o.Spec.Rules = nil
				o.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "shop", Port: networkingv1.ServiceBackendPort{Number: 80}}}
				if o.Spec.IngressClassName != nil {
					delete(o.Annotations, "kubernetes.io/ingress.class")
				}
			}
		}
	}
}

func makePodValid(pod *corev1.Pod) {
	delete(pod.Annotations, corev1.MirrorPodAnnotationKey)
	if pod.GenerateName == "" {
		pod.Name = "shop"
	}
	spec := &pod.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			makeContainerValid(&list[i])
		}
	}
	spec.EphemeralContainers = nil
	spec.Resources = nil
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil && image.Reference == "" {
			image.Reference = "a"
		}
	}
	for i := range spec.Tolerations {
		makeTolerationValid(&spec.Tolerations[i])
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, withoutTopology)
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		a.PodAffinity = nil
	}
}

func withoutTopology(term corev1.PodAffinityTerm) bool { return term.TopologyKey == "" }

func makeContainerValid(c *corev1.Container) {
	if c.Image == "" {
		c.Image = "a"
	}
	for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name := range list {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				delete(list, name)
			}
		}
	}
	for name, request := range c.Resources.Requests {
		if limit, ok := c.Resources.Limits[name]; ok && limit.Cmp(request) < 0 {
			delete(c.Resources.Limits, name)
		}
	}
}

func makeTolerationValid(t *corev1.Toleration) {
	switch {
	case t.Key == "":
		t.Operator, t.Value = corev1.TolerationOpExists, ""
	case t.Operator == corev1.TolerationOpExists:
		t.Value = ""
	default:
		t.Operator = corev1.TolerationOpEqual
	}
	if t.Effect != corev1.TaintEffectNoExecute {
		t.TolerationSeconds = nil
	}
}
