// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func defaultStorageClass(c *storagev1.StorageClass) {
	setDefault(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	setDefault(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	if ref.APIGroup == "" {
		ref.APIGroup = rbacv1.GroupName
	}
	for i := range subjects {
		if s := &subjects[i]; s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}
