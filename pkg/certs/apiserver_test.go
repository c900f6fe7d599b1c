// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

// TestSelfManagedOnAPIServer runs the tests that need a real API server.
func TestSelfManagedOnAPIServer(t *testing.T) {
	c := kubetest.Start(t)
	t.Run("three replicas", func(t *testing.T) { testSelfManaged(t, c) })
	t.Run("another installation", func(t *testing.T) { testAnotherInstallation(t, c) })
}

// testSelfManaged runs three sources on a real API server. They must agree on a CA, recreate a deleted Secret, and
// replace the CA on request. All the time, every caBundle must trust the certificates of all three.
func testSelfManaged(t *testing.T, c *kubetest.Cluster) {
	name, configurations := c.Configuration(t, string(ValidatingWebhookConfiguration), "a.example.com", "b.example.com")
	target := Target{Kind: ValidatingWebhookConfiguration, Name: name}
	o := testOptions()
	o.Config, o.Namespace, o.Targets = c.Config, c.Namespace(t), []Target{target}
	o.DNSNames = append(o.DNSNames, "none.none.svc") // the Service that the test's webhooks name
	o.Settle, o.Interval = 200*time.Millisecond, time.Second
	var all []*replica
	for range 3 {
		o.Logger = quiet()
		source, err := NewSelfManaged(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(t.Context())
		r := &replica{SelfManaged: source, kill: kill, ended: make(chan error, 1)}
		go func() { r.ended <- r.Start(ctx) }()
		all = append(all, r)
		defer r.stop(t)
	}
	secrets := c.Resource("v1", "Secret", o.Namespace)
	// until waits until done reports true for every source. Meanwhile it counts the calls, and the calls that fail.
	calls, failed := 0, 0
	until := func(what string, done func(Status) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			finished := true
			bundle := bundleOf(t, kubetest.Get(t, configurations, target.Name))
			for _, r := range all {
				if calls++; r.call(bundle) != nil {
					failed++
				}
				finished = finished && done(r.Status())
			}
			return finished, nil
		})
		if err != nil {
			t.Fatalf("waiting until %s: %v; %+v", what, err, all[0].Status())
		}
	}
	until("the first CA signs", func(s Status) bool { return s.Phase == Stable && s.Trusted && s.Err == nil })
	failed = 0
	text := func() string { return fmt.Sprint(kubetest.Get(t, secrets, o.Secret).Object["data"]) }

	if err := secrets.Delete(t.Context(), o.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("the Secret is back", func(Status) bool {
		_, err := secrets.Get(t.Context(), o.Secret, metav1.GetOptions{})
		return err == nil
	})
	before := text()
	kubetest.Merge(t, secrets, o.Secret, `{"data": null}`)
	until("the Secret is filled", func(Status) bool { return text() != fmt.Sprint(map[string]any(nil)) && len(text()) > 1000 })
	kubetest.Merge(t, secrets, o.Secret, `{"stringData": {"rotate": "now"}}`)
	until("another CA signs", func(s Status) bool { return s.Rotations == 1 && s.Phase == Retiring && s.Err == nil })
	if text() == before {
		t.Error("the Secret is what it was")
	}
	if failed > 0 {
		t.Errorf("%d of %d calls failed", failed, calls)
	}
}

// bundleOf returns the caBundle of the first webhook in a configuration.
func bundleOf(t *testing.T, configuration *unstructured.Unstructured) []byte {
	t.Helper()
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := unstructured.NestedString(webhooks[0].(map[string]any), "clientConfig", "caBundle")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// A source does not write the objects of another installation with the same name, and is not ready.
func testAnotherInstallation(t *testing.T, c *kubetest.Cluster) {
	const annotation = "example.com/owner"
	name, configurations := c.Configuration(t, string(ValidatingWebhookConfiguration), "a.example.com")
	target := Target{Kind: ValidatingWebhookConfiguration, Name: name}
	kubetest.Merge(t, configurations, target.Name, `{"metadata": {"annotations": {"example.com/owner": "theirs"}}}`)
	target.OwnerAnnotation, target.Owner = annotation, "ours"

	o := testOptions()
	o.Config, o.Namespace, o.Targets, o.Logger = c.Config, c.Namespace(t), []Target{target}, quiet()
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
		kubetest.Eventually(t, func() error {
			if s := source.Status(); !done() {
				return fmt.Errorf("%s: %+v", what, s)
			}
			return nil
		}, func(err error) bool { return err == nil })
	}
	reason := "ValidatingWebhookConfiguration " + target.Name + ` belongs to another installation, so its caBundle is not changed: its annotation example.com/owner is "theirs", and this installation's is "ours"`
	until("it says why it is not ready", func() bool {
		s := source.Status()
		return s.NotReady != nil && s.NotReady.Error() == reason && s.Err != nil && strings.Contains(s.Err.Error(), reason)
	})
	if got := bundleOf(t, kubetest.Get(t, configurations, target.Name)); len(got) > 0 {
		t.Errorf("it wrote %s", got)
	}
	kubetest.Merge(t, configurations, target.Name, `{"metadata": {"annotations": {"example.com/owner": "ours"}}}`)
	until("it is ready when the object is given to it", func() bool { return source.Status().NotReady == nil && source.Status().Trusted })
	before := bundleOf(t, kubetest.Get(t, configurations, target.Name))

	kubetest.Merge(t, configurations, target.Name, `{"metadata": {"annotations": {"example.com/owner": "theirs"}}, "webhooks": [`+kubetest.WebhookList("a.example.com")+`]}`)
	until("it says that the object belongs to another installation", func() bool { return source.Status().Err != nil })
	if s := source.Status(); s.NotReady != nil {
		t.Errorf("those that are called already go on: %v", s.NotReady)
	}
	if got := bundleOf(t, kubetest.Get(t, configurations, target.Name)); len(got) > 0 || len(before) == 0 {
		t.Errorf("there was %q, and it wrote %q", before, got)
	}
	kubetest.Merge(t, configurations, target.Name, `{"metadata": {"annotations": null}}`)
	until("a caBundle without an owner becomes ours", func() bool { return len(bundleOf(t, kubetest.Get(t, configurations, target.Name))) > 0 })
}
