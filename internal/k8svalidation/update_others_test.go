// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var immutableName = metav1.ObjectMeta{Name: "immutable"}

// TestImmutableFieldsAgreeWithTheAPIServer updates fields of kinds that this package validates only in updates, and of a
// Service. It compares the reasons with those of the API server.
func TestImmutableFieldsAgreeWithTheAPIServer(t *testing.T) {
	s := startServer(t)
	namespace := s.namespace(t)
	subject := []rbacv1.Subject{{Kind: "User", Name: "ann", APIGroup: rbacv1.GroupName}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	balancer := func() *corev1.Service {
		return &corev1.Service{ObjectMeta: immutableName, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/a"), Ports: []corev1.ServicePort{{Port: 80}},
		}}
	}
	for _, c := range []struct {
		old  client.Object
		edit func(o client.Object)
		path string
	}{
		{&rbacv1.RoleBinding{ObjectMeta: immutableName, Subjects: subject, RoleRef: role("view")}, func(o client.Object) {
			o.(*rbacv1.RoleBinding).RoleRef = role("edit")
		}, "roleRef"},
		{&rbacv1.ClusterRoleBinding{ObjectMeta: immutableName, Subjects: subject, RoleRef: role("view")}, func(o client.Object) {
			o.(*rbacv1.ClusterRoleBinding).RoleRef = role("edit")
		}, "roleRef"},
		{&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mutable"}, Subjects: subject, RoleRef: role("view")}, func(o client.Object) {
			o.(*rbacv1.ClusterRoleBinding).Subjects = nil
		}, ""},
		{&storagev1.StorageClass{ObjectMeta: immutableName, Provisioner: "example.com/p"}, func(o client.Object) {
			o.(*storagev1.StorageClass).Parameters = map[string]string{"type": "ssd"}
		}, "parameters"},
		{&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Provisioner: "example.com/p"}, func(o client.Object) {
			o.(*storagev1.StorageClass).VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		}, "volumeBindingMode"},
		{&schedulingv1.PriorityClass{ObjectMeta: immutableName, Value: 10}, func(o client.Object) {
			o.(*schedulingv1.PriorityClass).Value = 20
		}, "value"},
		{&networkingv1.IngressClass{ObjectMeta: immutableName, Spec: networkingv1.IngressClassSpec{Controller: "example.com/a"}}, func(o client.Object) {
			o.(*networkingv1.IngressClass).Spec.Controller = "example.com/b"
		}, "spec.controller"},
		{&discoveryv1.EndpointSlice{ObjectMeta: immutableName, AddressType: discoveryv1.AddressTypeIPv4}, func(o client.Object) {
			o.(*discoveryv1.EndpointSlice).AddressType = discoveryv1.AddressTypeIPv6
		}, "addressType"},
		{&corev1.ResourceQuota{ObjectMeta: immutableName, Spec: corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}}}, func(o client.Object) {
			o.(*corev1.ResourceQuota).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
		}, "spec.scopes"},
		{balancer(), func(o client.Object) { o.(*corev1.Service).Spec.LoadBalancerClass = nil }, "spec.loadBalancerClass"},
	} {
		if namespaced, err := s.client.IsObjectNamespaced(c.old); err != nil {
			t.Fatal(err)
		} else if namespaced {
			c.old.SetNamespace(namespace)
		}
		if err := s.client.Create(t.Context(), c.old); err != nil {
			t.Fatal(err)
		}
		obj := c.old.DeepCopyObject().(client.Object)
		c.edit(obj)
		_, refusal := s.update(t, obj)
		paths := pathsOf(ValidateUpdate(obj, c.old))
		if want := c.path != ""; (refusal != nil) != want || (len(paths) == 1) != want || want && (paths[0] != c.path || !names(refusal, c.path)) {
			t.Errorf("%T: rejected here for %q, want %q; by the API server: %v", c.old, paths, c.path, refusal)
		}
	}
}
