// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Three sources on a real API server agree on a CA, fill the Secret again when it is gone, and
// replace the CA when they are asked to, while every caBundle trusts all of them at any time.
func testSelfManaged(t *testing.T, c testCluster) {
	target, configurations := c.configuration(t, ValidatingWebhookConfiguration, "a.example.com", "b.example.com")
	o := testOptions()
	o.Config, o.Namespace, o.Targets = c.config, c.namespace(t), []Target{target}
	o.DNSNames = append(o.DNSNames, "none.none.svc") // of the webhooks
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
	secrets := c.resource("v1", "Secret", o.Namespace)
	// until waits for all of them; from the first time on, they have to be trusted at every look.
	calls, failed := 0, 0
	until := func(what string, done func(Status) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			finished := true
			bundle := bundleOf(t, get(t, configurations, target.Name))
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
	text := func() string { return fmt.Sprint(get(t, secrets, o.Secret).Object["data"]) }

	if err := secrets.Delete(t.Context(), o.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("the Secret is back", func(Status) bool {
		_, err := secrets.Get(t.Context(), o.Secret, metav1.GetOptions{})
		return err == nil
	})
	before := text()
	merge(t, secrets, o.Secret, `{"data": null}`)
	until("the Secret is filled", func(Status) bool { return text() != fmt.Sprint(map[string]any(nil)) && len(text()) > 1000 })
	merge(t, secrets, o.Secret, `{"stringData": {"rotate": "now"}}`)
	until("another CA signs", func(s Status) bool { return s.Rotations == 1 && s.Phase == Retiring && s.Err == nil })
	if text() == before {
		t.Error("the Secret is what it was")
	}
	if failed > 0 {
		t.Errorf("%d of %d calls failed", failed, calls)
	}
}

// bundleOf returns the caBundle of the first webhook.
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
