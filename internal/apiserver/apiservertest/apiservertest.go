// SPDX-License-Identifier: Apache-2.0

// Package apiservertest starts a real API server for a test.
package apiservertest

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// Start runs an API server with these extra flags until the test ends. It skips or fails the test
// as need.APIServer does.
func Start(t testing.TB, flags map[string][]string) *apiserver.Server {
	t.Helper()
	need.APIServer(t)
	server, err := apiserver.Start(t.Context(), flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// HasMutatingPolicies reports whether an API server serves MutatingAdmissionPolicy in v1, which Kubernetes has since 1.36.
// It logs if it does not.
func HasMutatingPolicies(t testing.TB, config *rest.Config) bool {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	has := slices.ContainsFunc(all.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" })
	if !has {
		t.Log("this API server has no MutatingAdmissionPolicy in v1, so only validating policies are tested")
	}
	return has
}
