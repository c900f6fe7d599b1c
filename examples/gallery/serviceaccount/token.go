// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// VolumePrefix is the prefix of the name by which a token volume is recognized.
	VolumePrefix = "kube-api-access-"
	// VolumeName is the name of the token volume that the hook adds.
	VolumeName = VolumePrefix + "token"
	// MountPath is the folder in which clients look for the token.
	MountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is the lifetime of a token, as in the original. The API server recognizes tokens for Pods by this
	// odd number: it accepts them for longer, and reports their use after this time.
	tokenSeconds = 60*60 + 7
)

// mountToken mounts the token volume in each container, unless the container has another mount at the path. It adds the
// volume if the Pod has none.
func mountToken(spec *corev1.PodSpec) {
	name := VolumeName
	has := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, VolumePrefix) })
	if has >= 0 {
		name = spec.Volumes[has].Name
	}
	mounted := false
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			mounted = mount(&list[i], name) || mounted
		}
	}
	if mounted && has < 0 {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: token()}})
	}
}

// mount mounts the volume in the container and returns true, unless the container has a mount at the path.
func mount(c *corev1.Container, volume string) bool {
	if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == MountPath }) {
		return false
	}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, ReadOnly: true, MountPath: MountPath})
	return true
}

// token returns a volume with everything that a client needs: a token, the certificate of the API server's CA and the
// name of the namespace.
func token() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}
}
