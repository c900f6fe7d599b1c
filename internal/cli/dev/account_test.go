// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
)

// The account of the hooks has just the permissions that they declare, also after these have changed.
func TestAccountHasTheDeclaredPermissions(t *testing.T) {
	server := apiservertest.Start(t, nil)
	read := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}}}
	}
	for _, resource := range []string{"namespaces", "secrets"} {
		config, err := accountOf(t.Context(), server.Config, read(resource))
		if err != nil {
			t.Fatal(err)
		}
		file, err := writeKubeconfig(config)
		if err != nil {
			t.Fatal(err)
		}
		config, err = clientcmd.BuildConfigFromFlags("", file) // as the program of the hooks reads it
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, namespaces := clients.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		_, secrets := clients.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		allowed, denied := namespaces, secrets
		if resource == "secrets" {
			allowed, denied = secrets, namespaces
		}
		if allowed != nil || !apierrors.IsForbidden(denied) {
			t.Errorf("with permission to list %s: namespaces %v, secrets %v", resource, namespaces, secrets)
		}
	}
}

// The kubeconfig of an existing cluster keeps the credentials of the user.
func TestKubeconfigKeepsClientCertificates(t *testing.T) {
	server := apiservertest.Start(t, nil)
	file, err := writeKubeconfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file) })
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
