// SPDX-License-Identifier: Apache-2.0

// Package kubetest starts an API server for tests of the certificate sources, and creates objects in it.
package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
)

// A Cluster is a real API server for tests.
type Cluster struct {
	Config *rest.Config
	client dynamic.Interface // with the rights of an administrator
}

// Start starts an API server that runs until the end of the test.
func Start(t *testing.T) *Cluster {
	t.Helper()
	server := apiservertest.Start(t, nil)
	config := rest.CopyConfig(server.Config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // for caBundles that are not certificates
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{config, client}
}

// Namespace creates a namespace and returns its name.
func (c *Cluster) Namespace(t *testing.T) string {
	t.Helper()
	return c.Create(t, "v1", "Namespace", Parse(t, `{"metadata": {"generateName": "certs-"}}`)).GetName()
}

var resources = map[string]string{
	"Namespace": "namespaces", "Secret": "secrets", "ServiceAccount": "serviceaccounts",
	"Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
	"CustomResourceDefinition": "customresourcedefinitions", "APIService": "apiservices",
}

// Resource returns a client for the objects of a kind.
func (c *Cluster) Resource(apiVersion, kind, namespace string) dynamic.ResourceInterface {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	r := c.client.Resource(u.GroupVersionKind().GroupVersion().WithResource(resources[kind]))
	if namespace != "" {
		return r.Namespace(namespace)
	}
	return r
}

// Create creates an object and deletes it at the end of the test.
func (c *Cluster) Create(t *testing.T, apiVersion, kind string, content map[string]any) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	r := c.Resource(apiVersion, kind, object.GetNamespace())
	created, err := r.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.WithoutCancel(t.Context()), created.GetName(), metav1.DeleteOptions{}) })
	return created
}

// Parse decodes a JSON object.
func Parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

// Get reads an object. An error ends the test.
func Get(t *testing.T, r dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := r.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Merge applies a JSON merge patch to an object. An error ends the test.
func Merge(t *testing.T, r dynamic.ResourceInterface, name, patch string) {
	t.Helper()
	if _, err := r.Patch(context.WithoutCancel(t.Context()), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
}

// Delete deletes an object. An error ends the test.
func Delete(t *testing.T, r dynamic.ResourceInterface, name string) {
	t.Helper()
	if err := r.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Admission is the API version of webhook configurations.
const Admission = "admissionregistration.k8s.io/v1"

// Configuration creates a webhook configuration with webhooks of these names, which match no request. It returns the
// name of the configuration, and a client for configurations of this kind.
func (c *Cluster) Configuration(t *testing.T, kind string, webhooks ...string) (name string, configurations dynamic.ResourceInterface) {
	t.Helper()
	created := c.Create(t, Admission, kind, Parse(t, fmt.Sprintf(
		`{"metadata": {"generateName": "certs-"}, "webhooks": [%s]}`, WebhookList(webhooks...))))
	return created.GetName(), c.Resource(Admission, kind, "")
}

// WebhookList returns webhooks, in JSON, that match no request.
func WebhookList(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf(`{
			"name": %q, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
			"clientConfig": {"service": {"namespace": "none", "name": "none", "path": "/%s"}},
			"rules": [{"operations": ["CREATE"], "apiGroups": ["certs.example.com"], "apiVersions": ["v1"], "resources": ["none"]}]}`, name, name))
	}
	return strings.Join(all, ", ")
}

// Eventually calls try until done accepts its error, for at most 20 seconds. The API server applies some changes with a
// delay, such as new RBAC permissions.
func Eventually(t *testing.T, try func() error, done func(error) bool) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = try()
		return done(last), nil
	}); err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}
