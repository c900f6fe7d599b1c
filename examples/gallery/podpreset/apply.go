// SPDX-License-Identifier: Apache-2.0

package podpreset

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// apply returns a copy of the Pod with everything that the presets add. The error lists all conflicts.
func apply(presets []Preset, pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	var errs []error
	for _, p := range presets {
		if conflicts := p.addTo(pod); len(conflicts) > 0 {
			errs = append(errs, fmt.Errorf("preset %s conflicts with %s", p.Name, strings.Join(conflicts, ", ")))
		}
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AppliedPrefix+p.Name, p.hash())
	}
	return pod, utilerrors.NewAggregate(errs)
}

// addTo adds the parts of the preset to the Pod and its containers. It returns the parts that conflict with the Pod.
func (p Preset) addTo(pod *corev1.Pod) (conflicts []string) {
	spec := &pod.Spec
	for _, v := range p.Spec.Volumes {
		if !add(&spec.Volumes, v, func(has corev1.Volume) (same, clash bool) {
			return equality.Semantic.DeepEqual(v, has), v.Name == has.Name
		}) {
			conflicts = append(conflicts, "volume "+v.Name)
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			conflicts = append(conflicts, p.addToContainer(&list[i])...)
		}
	}
	return conflicts
}

func (p Preset) addToContainer(c *corev1.Container) (conflicts []string) {
	for _, e := range p.Spec.Env {
		if !add(&c.Env, e, func(has corev1.EnvVar) (same, clash bool) {
			return equality.Semantic.DeepEqual(e, has), e.Name == has.Name
		}) {
			conflicts = append(conflicts, fmt.Sprintf("environment variable %s of container %s", e.Name, c.Name))
		}
	}
	for _, from := range p.Spec.EnvFrom {
		add(&c.EnvFrom, from, func(has corev1.EnvFromSource) (same, clash bool) {
			same = equality.Semantic.DeepEqual(from, has)
			return same, same
		})
	}
	for _, m := range p.Spec.VolumeMounts {
		if hasDeviceAt(c, m.MountPath) || !add(&c.VolumeMounts, m, func(has corev1.VolumeMount) (same, clash bool) {
			return equality.Semantic.DeepEqual(m, has), m.Name == has.Name || samePath(m.MountPath, has.MountPath)
		}) {
			conflicts = append(conflicts, fmt.Sprintf("mount of %s at %s in container %s", m.Name, m.MountPath, c.Name))
		}
	}
	return conflicts
}

// add appends the item unless the list already contains it. It returns false if an element clashes with the item, such
// as one with the same name but different content.
func add[T any](list *[]T, item T, compare func(has T) (same, clash bool)) bool {
	found := false
	for _, has := range *list {
		same, clash := compare(has)
		if clash && !same {
			return false
		}
		found = found || clash
	}
	if !found {
		*list = append(*list, item)
	}
	return true
}

func hasDeviceAt(c *corev1.Container, mountPath string) bool {
	for _, d := range c.VolumeDevices {
		if samePath(d.DevicePath, mountPath) {
			return true
		}
	}
	return false
}

// samePath compares paths as the kubelet does.
func samePath(a, b string) bool { return path.Clean("/"+a) == path.Clean("/"+b) }
