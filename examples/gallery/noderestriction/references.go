// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/gallery/references"
)

// referredTo returns the resource of an API object that the Pod refers to, or an empty string if there is none. It
// returns an error for a volume of an unknown type, which may refer to an object, too.
func referredTo(pod *corev1.Pod) (resource string, err error) {
	spec := &pod.Spec
	switch {
	case spec.ServiceAccountName != "":
		return "serviceaccounts", nil
	case references.HasSecret(spec):
		return "secrets", nil
	case references.HasConfigMap(spec):
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
