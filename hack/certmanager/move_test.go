// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"golang.org/x/sync/errgroup"

	"github.com/admitkit/admitkit/examples/deny-policy/policy"
	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestMoveFromCertManagerFailsNoCall moves a webhook from cert-manager to self-managed certificates with the steps of
// the guide, while cainjector still runs. No call may fail.
func TestMoveFromCertManagerFailsNoCall(t *testing.T) {
	s := newService(t)
	s.forwardTo(s.program(t))
	awaitEnforced(t)
	w := s.watch(t)
	kubectl(t, "annotate", "validatingwebhookconfiguration/"+name, "cert-manager.io/inject-ca-from-")
	s.forwardTo(s.selfManaged(t))
	awaitBundle(t, 2)
	kubectl(t, "delete", "-n", name, "certificates", "--all")
	w.some(t)
	w.failedNone(t)
}

// TestMoveToCertManagerFailsNoCall moves a webhook from self-managed certificates to cert-manager, with a cainjector
// that merges its CA into the caBundle. No call may fail.
func TestMoveToCertManagerFailsNoCall(t *testing.T) {
	s := newService(t)
	kubectl(t, "annotate", "validatingwebhookconfiguration/"+name, "cert-manager.io/inject-ca-from-")
	change(t, "caBundle", nil)
	s.forwardTo(s.selfManaged(t))
	awaitEnforced(t)
	w := s.watch(t)
	kubectl(t, "annotate", "validatingwebhookconfiguration/"+name, "cert-manager.io/inject-ca-from=deny-policy/deny-policy")
	awaitBundle(t, 2)
	w.some(t) // until the witness has used the new caBundle
	s.forwardTo(s.program(t))
	w.some(t)
	w.failedNone(t)
}

// selfManaged serves the hooks of the example with self-managed certificates. It waits until they are ready
// and returns their address.
func (s *service) selfManaged(t *testing.T) string {
	t.Helper()
	log := testr.New(t)
	source, err := certs.NewSelfManaged(certs.Options{
		Config: env.api.Config, Namespace: name, Secret: "deny-policy-own", DNSNames: certs.ServiceNames(name, name),
		Targets: []certs.Target{{Kind: certs.ValidatingWebhookConfiguration, Name: name}},
		Settle:  2 * time.Second, Interval: 500 * time.Millisecond, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{
		Addr: "localhost:0", TLSConfig: certs.TLSConfig(source), Ready: certs.Ready(source), ShutdownDelay: time.Millisecond, Logger: log,
	}, policy.Hooks(&policy.FileLedger{Path: t.TempDir() + "/ledger"})...)
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return source.Start(ctx) })
	group.Go(func() error { return server.Start(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	addr, err := server.Addr(ctx)
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "the source is ready", certs.Ready(source))
	return addr.String()
}
