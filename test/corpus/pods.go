// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// sidecar returns the container that the sidecar injectors add.
func sidecar() corev1.Container {
	return corev1.Container{Name: "agent", Image: "registry.example.com/agent:v1"}
}

// everyContainer returns the init containers and the regular containers.
func everyContainer(p *corev1.Pod) []*corev1.Container {
	return slices.Concat(pointers(p.Spec.InitContainers), pointers(p.Spec.Containers))
}

// appContainers returns the regular containers.
func appContainers(p *corev1.Pod) []*corev1.Container { return pointers(p.Spec.Containers) }

// pointers returns a pointer to each element of a list.
func pointers[T any](list []T) []*T {
	var all []*T
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// container returns the container with the name, or nil. Names are unique in the whole Pod.
func container(p *corev1.Pod, name string) *corev1.Container {
	for _, c := range everyContainer(p) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// nameTaken reports whether a container of any kind has the name.
func nameTaken(p *corev1.Pod, name string) bool {
	return container(p, name) != nil ||
		slices.ContainsFunc(p.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

func hasVolume(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

func addVolume(p *corev1.Pod, v corev1.Volume) { p.Spec.Volumes = append(p.Spec.Volumes, v) }

func addMount(c *corev1.Container, m corev1.VolumeMount) { c.VolumeMounts = append(c.VolumeMounts, m) }

func mountsVolume(c *corev1.Container, name string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
}

func findEnv(c *corev1.Container, name string) *corev1.EnvVar {
	for i := range c.Env {
		if c.Env[i].Name == name {
			return &c.Env[i]
		}
	}
	return nil
}

// ensureEnv adds a variable unless the container has one with the name.
func ensureEnv(c *corev1.Container, name, value string) {
	if findEnv(c, name) == nil {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

// setEnv sets a variable and replaces an existing value.
func setEnv(c *corev1.Container, name, value string) {
	if e := findEnv(c, name); e != nil {
		e.Value, e.ValueFrom = value, nil
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}

func annotate(p *corev1.Pod, key, value string) { setKey(&p.Annotations, key, value) }

func setKey(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// securityOf returns the security context of a container. It creates a missing one.
func securityOf(c *corev1.Container) *corev1.SecurityContext {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	return c.SecurityContext
}

// ensureVolume adds a volume unless the Pod has it. It denies another volume with the same name.
func ensureVolume(p *corev1.Pod, want corev1.Volume) error {
	for _, v := range p.Spec.Volumes {
		if v.Name != want.Name {
			continue
		}
		if !sameSource(v.VolumeSource, want.VolumeSource) {
			return denial("the volume " + v.Name + " is reserved")
		}
		return nil
	}
	addVolume(p, want)
	return nil
}

func ensuresVolume(want corev1.Volume) edit {
	return func(_ *review.Request, p *corev1.Pod) error { return ensureVolume(p, want) }
}

// ensureMount adds a mount unless the container has it. It denies another mount at the same path.
func ensureMount(c *corev1.Container, want corev1.VolumeMount) error {
	for _, d := range c.VolumeDevices {
		if samePath(d.DevicePath, want.MountPath) {
			return denial("the path " + want.MountPath + " is reserved")
		}
	}
	for _, m := range c.VolumeMounts {
		if !samePath(m.MountPath, want.MountPath) {
			continue
		}
		if m.Name != want.Name {
			return denial("the path " + want.MountPath + " is reserved")
		}
		return nil
	}
	addMount(c, want)
	return nil
}

func samePath(a, b string) bool { return path.Clean(a) == path.Clean(b) }

// ensureMounted calls ensureVolume, and ensureMount for every container.
func ensureMounted(p *corev1.Pod, v corev1.Volume, at string) error {
	if err := ensureVolume(p, v); err != nil {
		return err
	}
	return mountEverywhere(p, v.Name, at)
}

// mountEverywhere calls ensureMount for every container.
func mountEverywhere(p *corev1.Pod, volume, at string) error {
	for _, c := range everyContainer(p) {
		if err := ensureMount(c, corev1.VolumeMount{Name: volume, MountPath: at}); err != nil {
			return err
		}
	}
	return nil
}

// sameSource reports whether two sources are equal apart from the API server's defaults.
func sameSource(a, b corev1.VolumeSource) bool {
	return equality.Semantic.DeepEqual(defaulted(a), defaulted(b))
}

// defaulted returns a copy of the source with the API server's defaults.
func defaulted(s corev1.VolumeSource) *corev1.VolumeSource {
	out := s.DeepCopy()
	fill := func(mode **int32) {
		if *mode == nil {
			*mode = ptr.To[int32](0o644)
		}
	}
	if out.Secret != nil {
		fill(&out.Secret.DefaultMode)
	}
	if out.ConfigMap != nil {
		fill(&out.ConfigMap.DefaultMode)
	}
	return out
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
}

func configVolume(name, config string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: config},
	}}}
}

// isWindows reports whether the Pod is for Windows. The API server then rejects Linux security settings.
func isWindows(p *corev1.Pod) bool { return p.Spec.OS != nil && p.Spec.OS.Name == corev1.Windows }

// samplePod returns a Pod as a user would create it.
func samplePod(annotations map[string]string, spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "sample", Namespace: "default", Annotations: annotations},
		Spec:       spec,
	}
}
