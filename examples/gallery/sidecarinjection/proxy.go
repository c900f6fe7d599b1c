// SPDX-License-Identifier: Apache-2.0

package sidecarinjection

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// The names in an injected Pod, which are too specific to be chosen by accident, and the image that users can write.
const (
	ContainerName = "mesh-proxy"
	VolumeName    = "mesh-proxy-token"
	MountPath     = "/var/run/secrets/mesh"
	autoImage     = "auto"
)

// A place is a position of the proxy in the Pod.
type place int

const (
	last   place = iota // the last container
	first               // the first container; the kubelet starts the others when the proxy is ready
	native              // the first init container, which keeps running
)

// placeOf returns the place that the annotations or the configuration ask for.
func (c Config) placeOf(pod *corev1.Pod) (place, error) {
	annotations := field.NewPath("metadata", "annotations")
	isNative, err := parse(pod.Annotations, NativeAnnotation, c.NativeSidecars, annotations)
	if err != nil {
		return last, err
	}
	hold, err := parse(pod.Annotations, HoldAnnotation, c.HoldApplicationUntilProxyStarts, annotations)
	switch {
	case err != nil:
		return last, err
	case isNative:
		return native, nil
	case hold:
		return first, nil
	}
	return last, nil
}

// addProxy adds the container. No later call moves it: two webhooks that each moved their container to the front would
// never settle.
func (c Config) addProxy(spec *corev1.PodSpec, where place) {
	added := proxy(c.Image)
	if spec.Resources != nil { // all containers share these, and more requests might not fit
		added.Resources = corev1.ResourceRequirements{}
	}
	wait := []string{"/proxy", "wait"}
	switch where {
	case native:
		added.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		added.StartupProbe = &corev1.Probe{ // the kubelet starts the next container when this succeeds
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: wait}},
			PeriodSeconds: 1, FailureThreshold: 600, TimeoutSeconds: 1, SuccessThreshold: 1,
		}
		spec.InitContainers = slices.Insert(spec.InitContainers, 0, added)
	case first:
		added.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: wait}}}
		spec.Containers = slices.Insert(spec.Containers, 0, added)
	default:
		spec.Containers = append(spec.Containers, added)
	}
}

func proxy(image string) corev1.Container {
	resources := corev1.ResourceList{ // requests equal limits, so a Pod keeps the QoS class Guaranteed
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("128Mi"),
	}
	return corev1.Container{
		Name: ContainerName, Image: image, Args: []string{"proxy", "--token=" + MountPath + "/token"},
		Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources.DeepCopy()},
		SecurityContext: &corev1.SecurityContext{ // as the restricted Pod Security Standard requires
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			RunAsNonRoot:             ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// volume returns the volume with the proxy's token. It sets all fields for which the API server has defaults, so that
// it can be compared with a stored volume.
func volume() corev1.Volume {
	token := &corev1.ServiceAccountTokenProjection{Audience: "mesh.example.com", ExpirationSeconds: ptr.To[int64](43200), Path: "token"}
	return corev1.Volume{Name: VolumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode), Sources: []corev1.VolumeProjection{{ServiceAccountToken: token}},
	}}}
}

func mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: VolumeName, MountPath: MountPath, ReadOnly: true}
}

// proxyOf returns the container with the name of the proxy, or nil.
func proxyOf(spec *corev1.PodSpec) *corev1.Container {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		if i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == ContainerName }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// hasVolume reports whether the Pod has a volume with the name of the proxy's volume. conflicts checks its content.
func hasVolume(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == VolumeName })
}

// conflicts returns an error for each field that uses a name or the path of the proxy for something else.
func conflicts(spec *corev1.PodSpec) (errs field.ErrorList) {
	at := field.NewPath("spec")
	for i, v := range spec.Volumes {
		if v.Name == VolumeName && !equality.Semantic.DeepEqual(v, volume()) {
			errs = append(errs, field.Invalid(at.Child("volumes").Index(i).Child("name"), v.Name, "the name is reserved for the proxy's volume: rename this volume"))
		}
	}
	for i, c := range spec.InitContainers {
		at := at.Child("initContainers").Index(i)
		errs = append(errs, conflictsIn(&c, at)...)
		if c.Name == ContainerName && ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			errs = append(errs, field.Invalid(at.Child("restartPolicy"), ptr.Deref(c.RestartPolicy, ""), "the proxy must keep running: set Always"))
		}
	}
	for i, c := range spec.Containers {
		errs = append(errs, conflictsIn(&c, at.Child("containers").Index(i))...)
	}
	return errs
}

// conflictsIn returns the conflicts in a user's version of the proxy container, and none for other containers.
func conflictsIn(c *corev1.Container, at *field.Path) field.ErrorList {
	if c.Name != ContainerName {
		return nil
	}
	_, errs := mountIn(c, at)
	return errs
}

// mountIn reports whether the container mounts the proxy's volume at its path. It returns an error for each other mount
// or device at the path. It compares paths as the kubelet does.
func mountIn(c *corev1.Container, at *field.Path) (mounted bool, errs field.ErrorList) {
	const taken = "the path is reserved for the proxy's volume"
	for i, m := range c.VolumeMounts {
		switch {
		case path.Clean("/"+m.MountPath) != MountPath:
		case m.Name == VolumeName && m.SubPath == "" && m.SubPathExpr == "":
			mounted = true
		default:
			errs = append(errs, field.Invalid(at.Child("volumeMounts").Index(i).Child("mountPath"), m.MountPath, taken))
		}
	}
	for i, d := range c.VolumeDevices {
		if path.Clean("/"+d.DevicePath) == MountPath {
			errs = append(errs, field.Invalid(at.Child("volumeDevices").Index(i).Child("devicePath"), d.DevicePath, taken))
		}
	}
	return mounted, errs
}
