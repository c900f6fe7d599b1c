// SPDX-License-Identifier: Apache-2.0

package testcluster_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestServeWaitsBothWays sends a request at once after Serve and after stop. The API server must call the hook for the
// first request and not for the second.
func TestServeWaitsBothWays(t *testing.T) {
	need.APIServer(t)
	ctx := t.Context()
	cluster, err := testcluster.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "no-secrets.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "secrets")),
	}, func(context.Context, *webhook.Request[corev1.Secret]) error { return webhook.Deny("no secrets here") })

	create := []string{"create", "secret", "generic", "s", "--dry-run=server"}
	for range 3 {
		stop, err := cluster.Serve(ctx, "no-secrets", hook)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := cluster.Kubectl(ctx, "", create...); err == nil || !strings.Contains(out, "no secrets here") {
			t.Errorf("while the hook is served: %v, %s", err, out)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Kubectl(ctx, "", create...); err != nil {
			t.Errorf("after stop: %v", err)
		}
	}
}
