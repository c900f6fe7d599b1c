// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// updateOther checks the immutable fields of kinds that this package does not validate otherwise. Both objects have the
// same type.
func (c *checker) updateOther(obj, old runtime.Object) {
	switch o := obj.(type) {
	case *rbacv1.RoleBinding:
		c.roleRef(o.RoleRef, old.(*rbacv1.RoleBinding).RoleRef)
	case *rbacv1.ClusterRoleBinding:
		c.roleRef(o.RoleRef, old.(*rbacv1.ClusterRoleBinding).RoleRef)
	case *storagev1.StorageClass:
		old := old.(*storagev1.StorageClass)
		c.immutable(nil, "parameters", o.Parameters, old.Parameters)
		c.immutable(nil, "provisioner", o.Provisioner, old.Provisioner)
		c.immutable(nil, "reclaimPolicy", o.ReclaimPolicy, old.ReclaimPolicy)
		c.immutable(nil, "volumeBindingMode", o.VolumeBindingMode, old.VolumeBindingMode)
	case *schedulingv1.PriorityClass:
		old := old.(*schedulingv1.PriorityClass)
		if o.Value != old.Value {
			c.forbidden(field.NewPath("value"), "may not be changed in an update.")
		}
		c.immutable(nil, "preemptionPolicy", o.PreemptionPolicy, old.PreemptionPolicy)
	case *networkingv1.IngressClass:
		c.immutable(specPath, "controller", o.Spec.Controller, old.(*networkingv1.IngressClass).Spec.Controller)
	case *discoveryv1.EndpointSlice:
		c.immutable(nil, "addressType", o.AddressType, old.(*discoveryv1.EndpointSlice).AddressType)
	case *corev1.ResourceQuota:
		c.immutable(specPath, "scopes", setOf(o.Spec.Scopes), setOf(old.(*corev1.ResourceQuota).Spec.Scopes))
	}
}

func (c *checker) roleRef(ref, old rbacv1.RoleRef) {
	if ref != old {
		c.invalid(field.NewPath("roleRef"), ref, "cannot change roleRef")
	}
}

// setOf returns the scopes in order, each once.
func setOf(scopes []corev1.ResourceQuotaScope) []corev1.ResourceQuotaScope {
	return slices.Compact(slices.Sorted(slices.Values(scopes)))
}
