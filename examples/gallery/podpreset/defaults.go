// SPDX-License-Identifier: Apache-2.0

package podpreset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// withDefaults returns a copy of the presets with the defaults that the API server sets in a Pod. So the hook
// recognizes the parts that it has added. withDefaults knows the defaults of common volume sources. For iscsi, rbd,
// azureDisk, scaleIO and ephemeral, a preset must set all fields itself.
func withDefaults(presets []Preset) (all []Preset) {
	for _, p := range presets {
		var spec Spec
		for _, e := range p.Spec.Env {
			e = *e.DeepCopy()
			if from := e.ValueFrom; from != nil {
				setFieldVersion(from.FieldRef)
			}
			spec.Env = append(spec.Env, e)
		}
		for _, v := range p.Spec.Volumes {
			v = *v.DeepCopy()
			setVolumeDefaults(&v.VolumeSource)
			spec.Volumes = append(spec.Volumes, v)
		}
		p.Spec.Env, p.Spec.Volumes = spec.Env, spec.Volumes
		all = append(all, p)
	}
	return all
}

func setVolumeDefaults(v *corev1.VolumeSource) {
	switch {
	case v.HostPath != nil:
		setDefault(&v.HostPath.Type, corev1.HostPathUnset)
	case v.ConfigMap != nil:
		setDefault(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.Secret != nil:
		setDefault(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setDefault(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		setFieldVersions(v.DownwardAPI.Items)
	case v.Projected != nil:
		setDefault(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				setDefault(&s.ServiceAccountToken.ExpirationSeconds, 60*60)
			}
			if s.DownwardAPI != nil {
				setFieldVersions(s.DownwardAPI.Items)
			}
		}
	}
}

func setFieldVersions(items []corev1.DownwardAPIVolumeFile) {
	for _, item := range items {
		setFieldVersion(item.FieldRef)
	}
}

func setFieldVersion(ref *corev1.ObjectFieldSelector) {
	if ref != nil && ref.APIVersion == "" {
		ref.APIVersion = "v1"
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}
