// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

// apply sends a server-side apply, as a deployment tool does.
func apply(t *testing.T, c testCluster, target Target, webhooks string, force bool) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: kubetest.Parse(t, fmt.Sprintf(
		`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "webhooks": [%s]}`, kubetest.Admission, target.Kind, target.Name, webhooks))}
	_, err := c.Resource(kubetest.Admission, target.Kind, "").Apply(t.Context(), target.Name, object, metav1.ApplyOptions{FieldManager: "gitops", Force: force})
	return err
}

func testOtherOwners(t *testing.T, c testCluster) {
	k := c.cluster(t)
	target, r := c.configuration(t, MutatingWebhookConfiguration, "a.example.com", "b.example.com")
	manifest := kubetest.Get(t, r, target.Name)
	both := func(bundle string) string { return "a.example.com=" + bundle + " b.example.com=" + bundle }

	mustWrite(t, k, target, "one")
	t.Run("an update from an old manifest empties the bundles", func(t *testing.T) {
		stale := manifest.DeepCopy()
		stale.SetResourceVersion(kubetest.Get(t, r, target.Name).GetResourceVersion())
		stale.SetManagedFields(nil)
		if _, err := r.Update(t.Context(), stale, metav1.UpdateOptions{FieldManager: "helm"}); err != nil {
			t.Fatal(err)
		}
		if got := bundles(mustRead(t, k, target)); got != both("") {
			t.Errorf("got %s", got)
		}
		mustWrite(t, k, target, "two")
		if got := bundles(mustRead(t, k, target)); got != both("two") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an apply without bundles leaves them", func(t *testing.T) {
		if err := apply(t, c, target, kubetest.WebhookList("a.example.com", "b.example.com"), true); err != nil {
			t.Fatal(err)
		}
		if got := bundles(mustRead(t, k, target)); got != both("two") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an apply with a bundle conflicts, or is corrected when forced", func(t *testing.T) {
		webhook := fmt.Sprintf(`{"name": "a.example.com", "clientConfig": {"caBundle": %q}}`, encoded("foreign"))
		err := apply(t, c, target, webhook, false)
		if err == nil || !strings.Contains(err.Error(), `conflict with "admitkit-certs": .webhooks[name="a.example.com"].clientConfig.caBundle`) {
			t.Errorf("got error %v, want a conflict", err)
		}
		if err := apply(t, c, target, webhook, true); err != nil {
			t.Fatal(err)
		}
		if got := bundles(mustRead(t, k, target)); got != "a.example.com=foreign b.example.com=two" {
			t.Errorf("got %s", got)
		}
		mustWrite(t, k, target, "three")
		if got := bundles(mustRead(t, k, target)); got != both("three") {
			t.Errorf("got %s", got)
		}
	})
}

// testRemovalByOwner shows how a deployment tool can remove a webhook from its configuration. If the tool applies a
// list without the webhook, the webhook stays in the list, but only with the caBundle, which another field manager
// owns. Such a webhook is invalid, so the API server rejects the apply. The tool must first remove the webhook with a
// separate request.
func testRemovalByOwner(t *testing.T, c testCluster) {
	k := c.cluster(t)
	target := Target{Kind: ValidatingWebhookConfiguration, Name: "certs-removal"}
	r := c.Resource(kubetest.Admission, target.Kind, "")
	if err := apply(t, c, target, kubetest.WebhookList("a.example.com", "b.example.com"), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.WithoutCancel(t.Context()), target.Name, metav1.DeleteOptions{}) })
	mustWrite(t, k, target, "one")
	err := apply(t, c, target, kubetest.WebhookList("b.example.com"), true)
	wantError(t, err, nil, "webhooks[0].clientConfig: Required value")

	remove := []byte(`[{"op": "test", "path": "/webhooks/0/name", "value": "a.example.com"}, {"op": "remove", "path": "/webhooks/0"}]`)
	if _, err := r.Patch(t.Context(), target.Name, types.JSONPatchType, remove, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, c, target, kubetest.WebhookList("b.example.com"), false); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, k, target, "two")
	if got := bundles(mustRead(t, k, target)); got != "b.example.com=two" {
		t.Errorf("got %s", got)
	}
}
