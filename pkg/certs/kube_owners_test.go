// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// apply is what a tool that applies on the server's side sends.
func apply(t *testing.T, c testCluster, target Target, webhooks string, force bool) error {
	t.Helper()
	object := &unstructured.Unstructured{Object: parse(t, fmt.Sprintf(
		`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "webhooks": [%s]}`, admission, target.Kind, target.Name, webhooks))}
	_, err := c.resource(admission, string(target.Kind), "").Apply(t.Context(), target.Name, object, metav1.ApplyOptions{FieldManager: "gitops", Force: force})
	return err
}

func testOtherOwners(t *testing.T, c testCluster) {
	k := c.cluster(t)
	target, r := c.configuration(t, MutatingWebhookConfiguration, "a.example.com", "b.example.com")
	manifest := get(t, r, target.Name)
	both := func(bundle string) string { return "a.example.com=" + bundle + " b.example.com=" + bundle }

	mustWrite(t, k, target, "one")
	t.Run("an update from an old manifest empties the bundles", func(t *testing.T) {
		stale := manifest.DeepCopy()
		stale.SetResourceVersion(get(t, r, target.Name).GetResourceVersion())
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
		if err := apply(t, c, target, webhookList("a.example.com", "b.example.com"), true); err != nil {
			t.Fatal(err)
		}
		if got := bundles(mustRead(t, k, target)); got != both("two") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an apply with a bundle conflicts, or is put right when forced", func(t *testing.T) {
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

// What is owned in an element keeps the element: an owner who applies without it is refused,
// as what would remain is no webhook. It has to be removed by a request of its own.
func testRemovalByOwner(t *testing.T, c testCluster) {
	k := c.cluster(t)
	target := Target{Kind: ValidatingWebhookConfiguration, Name: "certs-removal"}
	r := c.resource(admission, string(target.Kind), "")
	if err := apply(t, c, target, webhookList("a.example.com", "b.example.com"), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.WithoutCancel(t.Context()), target.Name, metav1.DeleteOptions{}) })
	mustWrite(t, k, target, "one")
	err := apply(t, c, target, webhookList("b.example.com"), true)
	wantError(t, err, nil, "webhooks[0].clientConfig: Required value")

	remove := []byte(`[{"op": "test", "path": "/webhooks/0/name", "value": "a.example.com"}, {"op": "remove", "path": "/webhooks/0"}]`)
	if _, err := r.Patch(t.Context(), target.Name, types.JSONPatchType, remove, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, c, target, webhookList("b.example.com"), false); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, k, target, "two")
	if got := bundles(mustRead(t, k, target)); got != "b.example.com=two" {
		t.Errorf("got %s", got)
	}
}

// What an installation of the same name has is not written, and a source that is to is not ready.
func testAnotherInstallation(t *testing.T, c testCluster) {
	const annotation = "example.com/owner"
	target, configurations := c.configuration(t, ValidatingWebhookConfiguration, "a.example.com")
	merge(t, configurations, target.Name, `{"metadata": {"annotations": {"example.com/owner": "theirs"}}}`)
	target.OwnerAnnotation, target.Owner = annotation, "ours"

	o := testOptions()
	o.Config, o.Namespace, o.Targets, o.Logger = c.config, c.namespace(t), []Target{target}, quiet()
	o.DNSNames = append(o.DNSNames, "none.none.svc")
	o.Settle, o.Interval = -1, 20*time.Millisecond
	source, err := NewSelfManaged(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	r := &replica{SelfManaged: source, kill: kill, ended: make(chan error, 1)}
	go func() { r.ended <- r.Start(ctx) }()
	defer r.stop(t)
	until := func(what string, done func() bool) {
		t.Helper()
		eventually(t, func() error {
			if s := source.Status(); !done() {
				return fmt.Errorf("%s: %+v", what, s)
			}
			return nil
		}, func(err error) bool { return err == nil })
	}
	reason := "ValidatingWebhookConfiguration " + target.Name + ` belongs to somebody else, so its caBundle is left alone: example.com/owner is "theirs" there, and this is "ours"`
	until("it says why it is not ready", func() bool {
		s := source.Status()
		return s.NotReady != nil && s.NotReady.Error() == reason && s.Err != nil && strings.Contains(s.Err.Error(), reason)
	})
	if got := bundleOf(t, get(t, configurations, target.Name)); len(got) > 0 {
		t.Errorf("it wrote %s", got)
	}
	merge(t, configurations, target.Name, `{"metadata": {"annotations": {"example.com/owner": "ours"}}}`)
	until("it is ready when the object is given to it", func() bool { return source.Status().NotReady == nil && source.Status().Trusted })
	before := bundleOf(t, get(t, configurations, target.Name))

	merge(t, configurations, target.Name, `{"metadata": {"annotations": {"example.com/owner": "theirs"}}, "webhooks": [`+webhookList("a.example.com")+`]}`)
	until("it says that the object was taken away", func() bool { return source.Status().Err != nil })
	if s := source.Status(); s.NotReady != nil {
		t.Errorf("those that are called already go on: %v", s.NotReady)
	}
	if got := bundleOf(t, get(t, configurations, target.Name)); len(got) > 0 || len(before) == 0 {
		t.Errorf("there was %q, and it wrote %q", before, got)
	}
	merge(t, configurations, target.Name, `{"metadata": {"annotations": null}}`)
	until("what nobody claims is ours", func() bool { return len(bundleOf(t, get(t, configurations, target.Name))) > 0 })
}
