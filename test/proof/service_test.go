// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A service is a Kubernetes Service whose replicas are processes behind a balancer.
type service struct {
	namespace string
	host      string // DNS name in the certificates
	balancer  *balancer
	settings  Settings
	replicas  []*replica
	started   int // number of processes that were started, including restarts
}

// A replica has a process, which a restart replaces.
type replica struct {
	*process
	endpoint *endpoint
}

// inUse returns the processes that the balancer opens connections to.
func (s *service) inUse() []*process {
	b := s.balancer
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*process
	for _, e := range b.endpoints {
		if e.ready && !e.closed {
			all = append(all, e.process)
		}
	}
	return all
}

// newService creates a namespace with a Service. Its external name leads to a new balancer on this
// machine.
func newService(t *testing.T, maxLag time.Duration) *service {
	t.Helper()
	ctx := t.Context()
	ns, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "proof-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = clients.CoreV1().Services(ns.Name).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &service{namespace: ns.Name, host: "hooks." + ns.Name + ".svc", balancer: newBalancer(t, maxLag)}
}

// useStatic gives all replicas one certificate that does not change, and returns its CA.
func (s *service) useStatic(t *testing.T) (bundle []byte) {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := ca.Serving(s.host, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair := tlsConfig.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	s.settings.Certificates = Static
	s.settings.Cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	s.settings.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return ca.Bundle
}

// configure registers the hooks. The configurations are deleted at the end of the test.
func (s *service) configure(t *testing.T, bundle []byte) {
	t.Helper()
	ctx, api := t.Context(), clients.AdmissionregistrationV1()
	mutating, validating, err := webhook.Configurations(webhook.ConfigurationOptions{
		Name: s.namespace, CABundle: bundle,
		Service: &admissionregistrationv1.ServiceReference{Namespace: s.namespace, Name: "hooks", Port: &s.balancer.port},
	}, Hooks(s.namespace, 0)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_ = api.MutatingWebhookConfigurations().Delete(ctx, s.namespace, metav1.DeleteOptions{})
		_ = api.ValidatingWebhookConfigurations().Delete(ctx, s.namespace, metav1.DeleteOptions{})
	})
}

// start adds a replica and waits until the balancer uses it.
func (s *service) start(t *testing.T) {
	t.Helper()
	r := &replica{}
	s.fill(t, r)
	s.replicas = append(s.replicas, r)
}

// fill starts the process of a replica and waits until the balancer uses it.
func (s *service) fill(t *testing.T, r *replica) {
	t.Helper()
	s.started++
	settings := s.settings
	settings.Namespace, settings.Name = s.namespace, fmt.Sprint(s.started)
	settings.Rotation.Seed = seed + uint64(s.started)
	r.process = startProcess(t, settings)
	r.endpoint = s.balancer.add(r.process)
	s.balancer.awaitReady(t, r.endpoint)
}

// restart replaces the process of a replica, as an update of a Deployment does.
func (s *service) restart(t *testing.T, r *replica) {
	t.Helper()
	s.balancer.terminate(r.endpoint)
	r.stop(t)
	s.balancer.remove(r.endpoint)
	s.fill(t, r)
}

// awaitEnforced waits until each API server calls both hooks. An API server uses new configurations and a new Service
// only some time after they are stored.
func (s *service) awaitEnforced(t *testing.T) {
	t.Helper()
	for _, client := range plane.clients {
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			if last = createWith(ctx, client, s.namespace, nil); last != nil {
				return false, nil
			}
			last = createWith(ctx, client, s.namespace, map[string]string{Forbidden: "yes"})
			return last != nil && strings.Contains(last.Error(), "denied the request: "+Forbidden), nil
		})
		if err != nil {
			t.Fatalf("the API server does not call both hooks: %v (last error: %v)", err, last)
		}
	}
}
