// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const registrations = "admissionregistration.k8s.io"

// checkManaged checks the manifests of a program with --self-managed: its Secret, and the permissions for the Secret.
func checkManaged(t *testing.T, objects []*unstructured.Unstructured, deployment appsv1.Deployment) {
	t.Helper()
	for _, object := range objects {
		if group := object.GroupVersionKind().Group; group == registrations || group == "cert-manager.io" {
			t.Errorf("the program must create the %s %s itself", object.GetKind(), object.GetName())
		}
	}
	secret := into[corev1.Secret](t, one(t, objects, "Secret", ""))
	if secret.Namespace != deployment.Namespace || secret.Type != corev1.SecretTypeOpaque || len(secret.Data)+len(secret.StringData) > 0 {
		t.Errorf("the Secret for the CA is %s/%s of type %s with %d keys", secret.Namespace, secret.Name, secret.Type, len(secret.Data)+len(secret.StringData))
	}
	role := into[rbacv1.Role](t, one(t, objects, "Role", ""))
	clusterRole := into[rbacv1.ClusterRole](t, one(t, objects, "ClusterRole", ""))
	for _, rule := range slices.Concat(role.Rules, clusterRole.Rules) {
		if len(rule.ResourceNames) == 0 {
			t.Errorf("a rule permits all %v, without a name: %v", rule.Resources, rule.Verbs)
		}
		for resource, name := range map[string]string{"secrets": secret.Name, "deployments": deployment.Name} {
			if slices.Contains(rule.Resources, resource) && !slices.Equal(rule.ResourceNames, []string{name}) {
				t.Errorf("the rule for %s is for the names %v, want %s", resource, rule.ResourceNames, name)
			}
		}
	}
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: deployment.Namespace, Name: deployment.Spec.Template.Spec.ServiceAccountName}}
	binding := into[rbacv1.RoleBinding](t, one(t, objects, "RoleBinding", ""))
	clusterBinding := into[rbacv1.ClusterRoleBinding](t, one(t, objects, "ClusterRoleBinding", ""))
	for _, subjects := range [][]rbacv1.Subject{binding.Subjects, clusterBinding.Subjects} {
		if !reflect.DeepEqual(subjects, account) {
			t.Errorf("the subjects of a binding are %v, want %v", subjects, account)
		}
	}
	if binding.RoleRef.Name != role.Name || clusterBinding.RoleRef.Name != clusterRole.Name {
		t.Error("the bindings do not refer to the roles")
	}
}

// checkTrust checks that the configurations, the certificate, the issuer and the CA refer to each other.
func checkTrust(t *testing.T, objects []*unstructured.Unstructured, service corev1.Service, volumes []corev1.Volume) {
	t.Helper()
	const annotation = "cert-manager.io/inject-ca-from"
	serving := one(t, objects, "Certificate", service.Name)
	for _, object := range objects {
		if object.GroupVersionKind().Group != registrations {
			continue
		}
		if got, want := object.GetAnnotations()[annotation], serving.GetNamespace()+"/"+serving.GetName(); got != want {
			t.Errorf("%s: %s is %q, want %q", object.GetKind(), annotation, got, want)
		}
	}
	names, _, _ := unstructured.NestedStringSlice(serving.Object, "spec", "dnsNames")
	if want := service.Name + "." + service.Namespace + ".svc"; !slices.Contains(names, want) {
		t.Errorf("the certificate is for %q, the API server asks for %s", names, want)
	}
	secret := lookup(t, serving, "spec", "secretName")
	if !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == secret }) {
		t.Errorf("the Pods do not mount the Secret %s", secret)
	}
	issuer := one(t, objects, "Issuer", lookup(t, serving, "spec", "issuerRef", "name").(string))
	ca := one(t, objects, "Certificate", service.Name+"-ca")
	if got, want := lookup(t, issuer, "spec", "ca", "secretName"), lookup(t, ca, "spec", "secretName"); got != want {
		t.Errorf("the issuer uses the Secret %s, but the CA is in %s", got, want)
	}
	if lookup(t, ca, "spec", "isCA") != true {
		t.Error("the certificate of the CA lacks isCA")
	}
	root := one(t, objects, "Issuer", lookup(t, ca, "spec", "issuerRef", "name").(string))
	lookup(t, root, "spec", "selfSigned")
}
