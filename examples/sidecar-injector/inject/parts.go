// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"iter"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Names of the parts of an injected Pod. They are constant, and so specific that no user chooses them by
// accident.
const (
	ContainerName = "sidecar-proxy"
	VolumeName    = "sidecar-proxy-socket"
	MountPath     = "/run/sidecar-proxy"
)

// proxy returns the native sidecar: an init container that keeps running. It starts before all other
// containers, and a Job can finish while it runs.
func proxy(image string) corev1.Container {
	// Requests equal limits, so a Pod keeps the QoS class Guaranteed.
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	return corev1.Container{
		Name:          ContainerName,
		Image:         image,
		Args:          []string{"--listen=unix://" + MountPath + "/proxy.sock"},
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Resources:     corev1.ResourceRequirements{Limits: resources, Requests: resources.DeepCopy()},
		SecurityContext: &corev1.SecurityContext{ // required by the restricted Pod Security Standard
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			RunAsNonRoot:             ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func volume() corev1.Volume {
	return corev1.Volume{Name: VolumeName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("1Mi")),
	}}}
}

func mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: VolumeName, MountPath: MountPath}
}

// containers yields every container of the Pod, including the proxy, with its field path.
func containers(spec *corev1.PodSpec) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(field.NewPath("spec", "initContainers").Index(i), &spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(field.NewPath("spec", "containers").Index(i), &spec.Containers[i]) {
				return
			}
		}
	}
}

// hasProxy reports whether the Pod has a container with the name of the proxy. A container with that name and
// other content is the user's version of the proxy.
func hasProxy(spec *corev1.PodSpec) bool {
	named := func(c corev1.Container) bool { return c.Name == ContainerName }
	return slices.ContainsFunc(spec.InitContainers, named) || slices.ContainsFunc(spec.Containers, named)
}

// hasVolume reports whether the Pod has a volume with the name of the proxy's volume. conflicts checks its content.
func hasVolume(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == VolumeName })
}

// conflicts returns an error for each field that uses the name or path of a part for something else. The user must
// change such a field, because the hooks must not replace it.
func conflicts(spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for i, v := range spec.Volumes {
		if v.Name == VolumeName && !equality.Semantic.DeepEqual(v.VolumeSource, volume().VolumeSource) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "volumes").Index(i).Child("name"), v.Name,
				"the name is reserved for the proxy's volume: rename this volume"))
		}
	}
	for i, c := range spec.InitContainers {
		if c.Name == ContainerName && ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			errs = append(errs, field.Invalid(field.NewPath("spec", "initContainers").Index(i).Child("restartPolicy"),
				ptr.Deref(c.RestartPolicy, ""), "the proxy must keep running: set Always"))
		}
	}
	for at, c := range containers(spec) {
		_, inTheWay := mountOf(c, at)
		errs = append(errs, inTheWay...)
	}
	return errs
}

// mountOf reports whether the container mounts the proxy's volume at its path, and returns an error for each
// other mount there. It compares paths as the kubelet does: the API server permits "/run/x"
// together with "/run/x/" and "run/x", but the container sees only one of them.
func mountOf(c *corev1.Container, at *field.Path) (mounted bool, inTheWay field.ErrorList) {
	for i, m := range c.VolumeMounts {
		switch {
		case !isMountPath(m.MountPath):
		case m.Name == VolumeName && m.SubPath == "" && m.SubPathExpr == "":
			mounted = true
		default:
			inTheWay = append(inTheWay, taken(at.Child("volumeMounts").Index(i).Child("mountPath"), m.MountPath, m.Name))
		}
	}
	for i, d := range c.VolumeDevices {
		if isMountPath(d.DevicePath) {
			inTheWay = append(inTheWay, taken(at.Child("volumeDevices").Index(i).Child("devicePath"), d.DevicePath, d.Name))
		}
	}
	return mounted, inTheWay
}

func isMountPath(p string) bool { return path.Clean("/"+p) == MountPath }

func taken(at *field.Path, value, volume string) *field.Error {
	return field.Invalid(at, value, fmt.Sprintf("the path is reserved for the proxy's volume, but %q is mounted there", volume))
}
