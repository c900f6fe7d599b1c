// SPDX-License-Identifier: Apache-2.0

// Package references reports whether a Pod refers to Secrets or ConfigMaps, as k8s.io/kubernetes/pkg/api/pod does for
// Kubernetes' own admission controllers. References without a name do not count. If a volume has several types, which is
// not valid, only the first of them counts.
package references

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// HasSecret reports whether the environment of a container, a volume or a pull secret of the Pod names a Secret.
func HasSecret(spec *corev1.PodSpec) bool {
	named := func(r corev1.LocalObjectReference) bool { return r.Name != "" }
	return slices.ContainsFunc(spec.ImagePullSecrets, named) || slices.ContainsFunc(containers(spec), secretInContainer) ||
		slices.ContainsFunc(spec.Volumes, secretInVolume)
}

// HasConfigMap reports whether the environment of a container or a volume of the Pod names a ConfigMap.
func HasConfigMap(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(containers(spec), configMapInContainer) || slices.ContainsFunc(spec.Volumes, configMapInVolume)
}

// containers returns all containers of the Pod.
func containers(spec *corev1.PodSpec) []corev1.Container {
	all := slices.Concat(spec.InitContainers, spec.Containers)
	for _, c := range spec.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	return all
}

func secretInContainer(c corev1.Container) bool {
	return slices.ContainsFunc(c.EnvFrom, func(from corev1.EnvFromSource) bool {
		return from.SecretRef != nil && from.SecretRef.Name != ""
	}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name != ""
	})
}

func configMapInContainer(c corev1.Container) bool {
	return slices.ContainsFunc(c.EnvFrom, func(from corev1.EnvFromSource) bool {
		return from.ConfigMapRef != nil && from.ConfigMapRef.Name != ""
	}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil && e.ValueFrom.ConfigMapKeyRef.Name != ""
	})
}

func secretInVolume(v corev1.Volume) bool {
	named := func(r *corev1.LocalObjectReference) bool { return r != nil && r.Name != "" }
	switch {
	case v.AzureFile != nil:
		return v.AzureFile.SecretName != ""
	case v.CephFS != nil:
		return named(v.CephFS.SecretRef)
	case v.Cinder != nil:
		return named(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		return named(v.FlexVolume.SecretRef)
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil && s.Secret.Name != "" })
	case v.RBD != nil:
		return named(v.RBD.SecretRef)
	case v.Secret != nil:
		return v.Secret.SecretName != ""
	case v.ScaleIO != nil:
		return named(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		return named(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		return named(v.StorageOS.SecretRef)
	case v.CSI != nil:
		return named(v.CSI.NodePublishSecretRef)
	}
	return false
}

func configMapInVolume(v corev1.Volume) bool {
	switch {
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ConfigMap != nil && s.ConfigMap.Name != "" })
	case v.ConfigMap != nil:
		return v.ConfigMap.Name != ""
	}
	return false
}
