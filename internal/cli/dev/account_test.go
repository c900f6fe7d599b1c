// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
)

// TestAccountHasTheDeclaredPermissions checks that the ServiceAccount of the hooks has exactly the permissions that they
// declare, also after these have changed.
func TestAccountHasTheDeclaredPermissions(t *testing.T) {
	server := apiservertest.Start(t, nil)
	read := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}}}
	}
	// list gives the ServiceAccount the permissions, and returns the errors of its requests to list ConfigMaps and
	// Secrets.
	list := func(rules map[string][]rbacv1.PolicyRule, namespace string) (configMaps, secrets error) {
		t.Helper()
		config, err := accountOf(t.Context(), server.Config, "shop", rules)
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
		_, configMaps = clients.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		_, secrets = clients.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		return configMaps, secrets
	}
	rows := []struct {
		name       string
		rules      map[string][]rbacv1.PolicyRule
		namespace  string
		configMaps bool // the account may list ConfigMaps
		secrets    bool
	}{
		{"all ConfigMaps", map[string][]rbacv1.PolicyRule{"": read("configmaps")}, "", true, false},
		{"the rules have changed", map[string][]rbacv1.PolicyRule{"": read("secrets")}, "", false, true},
		{"one namespace, which is created", map[string][]rbacv1.PolicyRule{"shop": read("secrets")}, "shop", false, true},
		{"the ClusterRole of before is deleted", map[string][]rbacv1.PolicyRule{"shop": read("secrets")}, "other", false, false},
		{"the Role of before is deleted", nil, "shop", false, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			eventually(t, func() string { // the authorizer of the API server watches the roles
				configMaps, secrets := list(row.rules, row.namespace)
				if (configMaps == nil) != row.configMaps || (secrets == nil) != row.secrets {
					return fmt.Sprintf("configMaps: %v, secrets: %v", configMaps, secrets)
				}
				for _, err := range []error{configMaps, secrets} {
					if err != nil && !apierrors.IsForbidden(err) {
						return err.Error()
					}
				}
				return ""
			})
		})
	}
}

// TestKubeconfigKeepsClientCertificates checks that the kubeconfig for an existing cluster has the user's credentials.
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

// eventually waits until check returns no problem.
func eventually(t *testing.T, check func() (problem string)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == "", nil
	})
	if err != nil {
		t.Error(last)
	}
}
