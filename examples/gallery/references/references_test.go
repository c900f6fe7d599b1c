// SPDX-License-Identifier: Apache-2.0

package references

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// pods returns Pods that refer to a Secret with this name, and Pods that refer to a ConfigMap.
func pods(name string) (secrets, configMaps map[string]*corev1.PodSpec) {
	ref := corev1.LocalObjectReference{Name: name}
	container := corev1.Container{Env: []corev1.EnvVar{
		{}, {ValueFrom: &corev1.EnvVarSource{}}, {ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref}}},
	}}
	plain := corev1.Container{EnvFrom: []corev1.EnvFromSource{{}}}
	secrets = map[string]*corev1.PodSpec{
		"pull secret":         {ImagePullSecrets: []corev1.LocalObjectReference{{}, ref}},
		"init container":      {InitContainers: []corev1.Container{container}},
		"second container":    {Containers: []corev1.Container{plain, container}},
		"ephemeral container": {EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(container)}}},
		"environment":         {Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}}}}},
	}
	for kind, v := range map[string]corev1.VolumeSource{
		"azureFile": {AzureFile: &corev1.AzureFileVolumeSource{SecretName: name}},
		"cephfs":    {CephFS: &corev1.CephFSVolumeSource{SecretRef: &ref}},
		"cinder":    {Cinder: &corev1.CinderVolumeSource{SecretRef: &ref}},
		"csi":       {CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &ref}},
		"flex":      {FlexVolume: &corev1.FlexVolumeSource{SecretRef: &ref}},
		"iscsi":     {ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &ref}},
		"projected": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {Secret: &corev1.SecretProjection{LocalObjectReference: ref}}}}},
		"rbd":       {RBD: &corev1.RBDVolumeSource{SecretRef: &ref}},
		"scaleIO":   {ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &ref}},
		"secret":    {Secret: &corev1.SecretVolumeSource{SecretName: name}},
		"storageOS": {StorageOS: &corev1.StorageOSVolumeSource{SecretRef: &ref}},
	} {
		secrets[kind] = &corev1.PodSpec{Volumes: []corev1.Volume{{}, {VolumeSource: v}}}
	}
	return secrets, map[string]*corev1.PodSpec{
		"environment": {Containers: []corev1.Container{plain, {EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}}}}},
		"variable": {InitContainers: []corev1.Container{{Env: []corev1.EnvVar{
			{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref}}},
		}}}},
		"volume": {Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}}}}},
		"projected": {Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref}}},
		}}}}},
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"a": true, "": false} {
		secrets, configMaps := pods(name)
		for kind, spec := range secrets {
			if HasSecret(spec) != want || HasConfigMap(spec) {
				t.Errorf("%s with the Secret %q: got a Secret %v and a ConfigMap %v", kind, name, HasSecret(spec), HasConfigMap(spec))
			}
		}
		for kind, spec := range configMaps {
			if HasConfigMap(spec) != want || HasSecret(spec) {
				t.Errorf("%s with the ConfigMap %q: got a ConfigMap %v and a Secret %v", kind, name, HasConfigMap(spec), HasSecret(spec))
			}
		}
	}
}

// TestVolumeWithTwoTypes has a volume that is not valid. Only its first type counts, as in the original.
func TestVolumeWithTwoTypes(t *testing.T) {
	t.Parallel()
	v := corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{}, Secret: &corev1.SecretVolumeSource{SecretName: "a"}}
	if HasSecret(&corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: v}}}) {
		t.Error("the second type counts")
	}
}
