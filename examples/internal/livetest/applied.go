// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/testcluster"
)

// Apply applies the manifests for the duration of a test. No controller runs the Deployment.
func Apply(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	namespace := one(t, render(t, c), "Namespace", "").GetName()
	t.Cleanup(func() {
		if _, err := c.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "-k", dir, "--wait=false", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
		deleteNamespace(t, c, namespace)
	})
	if out, err := c.Kubectl(t.Context(), "", "apply", "-k", dir); err != nil {
		t.Fatal(err)
	} else {
		t.Log(out)
	}
}

// RollOut sets the Deployment's status to ready.
func RollOut(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	manifest := one(t, render(t, c), "Deployment", "")
	var d appsv1.Deployment
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(manifest), &d); err != nil {
		t.Fatal(err)
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := c.Client.Status().Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
}

// deleteNamespace deletes a namespace and finishes the deletion in place of a controller manager. So another
// test can create the namespace again.
func deleteNamespace(t *testing.T, c *testcluster.Cluster, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := client.IgnoreNotFound(c.Client.Delete(ctx, namespace))
	if err == nil {
		err = c.Client.SubResource("finalize").Update(ctx, namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}
