// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// anyVolumeHas reports whether a volume of the Pod needs tokens for the audience. If none does, the error lists the
// volumes for which this cannot be determined.
func (in Cluster) anyVolumeHas(pod *corev1.Pod, audience string) (bool, error) {
	var errs []error
	for _, v := range pod.Spec.Volumes {
		found, err := in.volumeHas(pod, v, audience)
		if found {
			return true, nil
		}
		errs = append(errs, err)
	}
	return false, utilerrors.NewAggregate(errs)
}

// volumeHas reports whether the volume contains a token for the audience, or its CSI driver gets such tokens.
func (in Cluster) volumeHas(pod *corev1.Pod, v corev1.Volume, audience string) (bool, error) {
	if v.Projected != nil {
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience
		}), nil
	}
	name, err := in.driverOf(pod, v)
	if err != nil || name == "" {
		return false, err
	}
	driver, err := in.Drivers.Get(name)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(driver.Spec.TokenRequests, func(r storagev1.TokenRequest) bool { return r.Audience == audience }), nil
}

// driverOf returns the name of the volume's CSI driver, or an empty string if it has none.
func (in Cluster) driverOf(pod *corev1.Pod, v corev1.Volume) (string, error) {
	switch {
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		return in.driverOfClaim(pod.Namespace, pod.Name+"-"+v.Name)
	case v.PersistentVolumeClaim != nil:
		return in.driverOfClaim(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
	case v.CSI != nil:
		return v.CSI.Driver, nil
	}
	return successor(v.VolumeSource), nil
}

func (in Cluster) driverOfClaim(namespace, name string) (string, error) {
	claim, err := in.Claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return "", err
	}
	volume, err := in.Volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return "", err
	}
	if csi := volume.Spec.CSI; csi != nil {
		return csi.Driver, nil
	}
	return successor(inTree(volume.Spec.PersistentVolumeSource)), nil
}

// inTree converts the source of a persistent volume to that of a volume. The result is empty if successor knows no
// driver for the source.
func inTree(v corev1.PersistentVolumeSource) corev1.VolumeSource {
	source := corev1.VolumeSource{
		AWSElasticBlockStore: v.AWSElasticBlockStore, AzureDisk: v.AzureDisk, GCEPersistentDisk: v.GCEPersistentDisk,
		PortworxVolume: v.PortworxVolume, VsphereVolume: v.VsphereVolume,
	}
	if v.AzureFile != nil {
		source.AzureFile = &corev1.AzureFileVolumeSource{}
	}
	if v.Cinder != nil {
		source.Cinder = &corev1.CinderVolumeSource{}
	}
	return source
}

// successor returns the CSI driver that has replaced the in-tree plugin of a volume, or an empty string if there is
// none.
func successor(v corev1.VolumeSource) string {
	switch {
	case v.AWSElasticBlockStore != nil:
		return "ebs.csi.aws.com"
	case v.AzureDisk != nil:
		return "disk.csi.azure.com"
	case v.AzureFile != nil:
		return "file.csi.azure.com"
	case v.Cinder != nil:
		return "cinder.csi.openstack.org"
	case v.GCEPersistentDisk != nil:
		return "pd.csi.storage.gke.io"
	case v.PortworxVolume != nil:
		return "pxd.portworx.com"
	case v.VsphereVolume != nil:
		return "csi.vsphere.vmware.com"
	}
	return ""
}
