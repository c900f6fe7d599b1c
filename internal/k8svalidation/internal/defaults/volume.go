// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

const (
	defaultFileMode     = int32(0o644)
	defaultTokenSeconds = int64(60 * 60)
)

// VolumeSources counts the volume types that are set. A valid volume has one. It also counts types that a newer version
// of k8s.io/api adds.
func VolumeSources(source *corev1.VolumeSource) int {
	n := 0
	v := reflect.ValueOf(source).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			n++
		}
	}
	return n
}

func defaultVolume(v *corev1.Volume) {
	if VolumeSources(&v.VolumeSource) == 0 {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		setDefault(&v.Secret.DefaultMode, defaultFileMode)
	}
	if v.ConfigMap != nil {
		setDefault(&v.ConfigMap.DefaultMode, defaultFileMode)
	}
	if v.HostPath != nil {
		setDefault(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		setDefault(&v.DownwardAPI.DefaultMode, defaultFileMode)
		defaultFiles(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		defaultProjected(v.Projected)
	}
	if v.Image != nil && v.Image.PullPolicy == "" {
		v.Image.PullPolicy = pullPolicy(v.Image.Reference)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		defaultClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
	defaultStorage(&v.VolumeSource)
}

func defaultFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		defaultFieldRef(files[i].FieldRef)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	setDefault(&p.DefaultMode, defaultFileMode)
	for i := range p.Sources {
		source := &p.Sources[i]
		if source.DownwardAPI != nil {
			defaultFiles(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			setDefault(&source.ServiceAccountToken.ExpirationSeconds, defaultTokenSeconds)
		}
	}
}

// defaultStorage sets the defaults of volume types for storage systems.
func defaultStorage(v *corev1.VolumeSource) {
	if v.ISCSI != nil {
		fill(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		fill(&v.RBD.RBDPool, "rbd")
		fill(&v.RBD.RadosUser, "admin")
		fill(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		setDefault(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefault(&v.AzureDisk.FSType, "ext4")
		setDefault(&v.AzureDisk.ReadOnly, false)
		setDefault(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		fill(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&v.ScaleIO.FSType, "xfs")
	}
}

func defaultClaim(claim *corev1.PersistentVolumeClaim) {
	fill(&claim.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&claim.Spec)
	roundUp(claim.Status.Capacity)
	roundUp(claim.Status.AllocatedResources)
}

func defaultClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	setDefault(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}
