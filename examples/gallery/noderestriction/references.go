// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// referredTo returns the resource of an API object that the Pod refers to, or an empty string if there is none. It
// returns an error for a volume of an unknown type, which may refer to an object, too.
func referredTo(pod *corev1.Pod) (resource string, err error) {
	spec := &pod.Spec
	secrets, configMaps := fromContainers(spec)
	named := func(r corev1.LocalObjectReference) bool { return r.Name != "" }
	switch {
	case spec.ServiceAccountName != "":
		return "serviceaccounts", nil
	case secrets, slices.ContainsFunc(spec.ImagePullSecrets, named), slices.ContainsFunc(spec.Volumes, hasSecret):
		return "secrets", nil
	case configMaps, slices.ContainsFunc(spec.Volumes, hasConfigMap):
		return "configmaps", nil
	case len(spec.ResourceClaims) > 0:
		return "resourceclaims", nil
	}
	for _, v := range spec.Volumes {
		if resource, err := referredToBy(v); resource != "" || err != nil {
			return resource, err
		}
	}
	return "", nil
}

// fromContainers reports whether an environment variable of a container comes from a Secret or a ConfigMap.
func fromContainers(spec *corev1.PodSpec) (secrets, configMaps bool) {
	containers := slices.Concat(spec.InitContainers, spec.Containers)
	for _, c := range spec.EphemeralContainers {
		containers = append(containers, corev1.Container(c.EphemeralContainerCommon))
	}
	for _, c := range containers {
		for _, from := range c.EnvFrom {
			secrets = secrets || from.SecretRef != nil && from.SecretRef.Name != ""
			configMaps = configMaps || from.ConfigMapRef != nil && from.ConfigMapRef.Name != ""
		}
		for _, e := range c.Env {
			if from := e.ValueFrom; from != nil {
				secrets = secrets || from.SecretKeyRef != nil && from.SecretKeyRef.Name != ""
				configMaps = configMaps || from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name != ""
			}
		}
	}
	return secrets, configMaps
}

// hasSecret reports whether the volume names a Secret.
func hasSecret(v corev1.Volume) bool {
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

// hasConfigMap reports whether the volume names a ConfigMap.
func hasConfigMap(v corev1.Volume) bool {
	switch {
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ConfigMap != nil && s.ConfigMap.Name != "" })
	case v.ConfigMap != nil:
		return v.ConfigMap.Name != ""
	}
	return false
}

// referredToBy returns the resource that a volume of this type refers to, or an empty string if there is none.
func referredToBy(v corev1.Volume) (resource string, err error) {
	switch {
	case v.AWSElasticBlockStore != nil, v.AzureDisk != nil, v.CephFS != nil, v.Cinder != nil, v.DownwardAPI != nil, v.EmptyDir != nil,
		v.FC != nil, v.FlexVolume != nil, v.Flocker != nil, v.GCEPersistentDisk != nil, v.GitRepo != nil, v.HostPath != nil,
		v.Image != nil, v.ISCSI != nil, v.NFS != nil, v.PhotonPersistentDisk != nil, v.PortworxVolume != nil, v.Quobyte != nil,
		v.RBD != nil, v.ScaleIO != nil, v.StorageOS != nil, v.VsphereVolume != nil:
		return "", nil
	case v.ConfigMap != nil:
		return "configmaps (via configmap volumes)", nil
	case v.Secret != nil:
		return "secrets (via secret volumes)", nil
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)", nil
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)", nil
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims", nil
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)", nil
	case v.AzureFile != nil:
		return "secrets (via azureFile volumes)", nil
	case v.Projected != nil:
		return referredToByProjected(v)
	}
	return "", fmt.Errorf("unknown volume type for volume  %q", v.Name)
}

// referredToByProjected is referredToBy for a projected volume. A source of the downward API refers to no object.
func referredToByProjected(v corev1.Volume) (resource string, err error) {
	for _, s := range v.Projected.Sources {
		switch {
		case s.ConfigMap != nil:
			return "configmaps (via projected volumes)", nil
		case s.Secret != nil:
			return "secrets (via projected volumes)", nil
		case s.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)", nil
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles", nil
		case s.PodCertificate != nil:
			return "podcertificates", nil
		case s.DownwardAPI == nil:
			return "", fmt.Errorf("unknown source for projected volume %q", v.Name)
		}
	}
	return "", nil
}
