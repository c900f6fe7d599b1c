// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := env.api.Kubectl(context.WithoutCancel(t.Context()), env.kubeconfig, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func poll(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (%v)", what, err, last)
	}
}

func configuration(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	c, err := env.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trusted returns the CAs that the API server trusts for the webhook: those in the caBundle.
func trusted(ctx context.Context) (*x509.CertPool, error) {
	c, err := env.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.Webhooks[0].ClientConfig.CABundle) {
		return nil, fmt.Errorf("there is no caBundle yet")
	}
	return pool, nil
}

// handshake connects to the Service as an API server does, and returns the certificate that the Service presents.
func (s *service) handshake(ctx context.Context, c *tls.Config) (*x509.Certificate, error) {
	c.ServerName = name + "." + name + ".svc"
	conn, err := (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", fmt.Sprintf("localhost:%d", s.port))
	if err != nil {
		return nil, err
	}
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	return leaf, conn.Close()
}

// served returns the certificate that the Service presents now, without verifying it.
func (s *service) served(t *testing.T) *x509.Certificate {
	t.Helper()
	leaf, err := s.handshake(t.Context(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// awaitOther waits until the Service has a certificate other than old.
func (s *service) awaitOther(t *testing.T, old *x509.Certificate) {
	t.Helper()
	poll(t, "another certificate", func(context.Context) error {
		if s.served(t).Equal(old) {
			return fmt.Errorf("the Service still has the old certificate")
		}
		return nil
	})
}

// A witness makes calls and handshakes during a test, and counts them.
type witness struct {
	mu                          sync.Mutex
	calls, handshakes, failures int
	stop                        func()
}

// watch creates Pods that the hook must allow, one after the other. It also makes handshakes, and verifies
// them with the caBundle that it read shortly before.
func (s *service) watch(t *testing.T) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &witness{}
	var group sync.WaitGroup
	w.stop = sync.OnceFunc(func() { cancel(); group.Wait() })
	t.Cleanup(w.stop)
	loop := func(count *int, what string, try func() error) {
		for pause(ctx, 20*time.Millisecond) {
			err := try()
			if ctx.Err() != nil {
				return
			}
			w.mu.Lock()
			*count++
			if err != nil {
				w.failures++
				t.Logf("%s: %v", what, err)
			}
			w.mu.Unlock()
		}
	}
	for range 2 {
		group.Go(func() { loop(&w.calls, "create", func() error { return createPod(ctx, "shop:v1") }) })
		group.Go(func() {
			loop(&w.handshakes, "handshake", func() error {
				pool, err := trusted(ctx)
				if err != nil {
					return err
				}
				pause(ctx, rand.N(500*time.Millisecond))
				_, err = s.handshake(ctx, &tls.Config{RootCAs: pool})
				return err
			})
		})
	}
	return w
}

func (w *witness) end(t *testing.T) (failures int) {
	t.Helper()
	w.stop()
	t.Logf("%d calls and %d handshakes, %d failed", w.calls, w.handshakes, w.failures)
	if w.calls == 0 || w.handshakes == 0 {
		t.Error("there was no traffic")
	}
	return w.failures
}

func (w *witness) failedNone(t *testing.T) {
	t.Helper()
	if failures := w.end(t); failures > 0 {
		t.Errorf("%d failures", failures)
	}
}

// some waits for at least 30 further handshakes.
func (w *witness) some(t *testing.T) {
	t.Helper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.handshakes
	}
	enough := count() + 30
	poll(t, "more traffic", func(context.Context) error {
		if n := count(); n < enough {
			return fmt.Errorf("%d of %d handshakes", n, enough)
		}
		return nil
	})
}

const shops = "shops" // namespace in which the rules are enforced

func createPod(ctx context.Context, image string) error {
	_, err := env.clients.CoreV1().Pods(shops).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Labels: map[string]string{"app.kubernetes.io/name": "shop"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: image, Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		}}}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// awaitEnforced waits until the API server calls the hook and gets its responses.
func awaitEnforced(t *testing.T) {
	t.Helper()
	poll(t, "the rules are enforced", func(ctx context.Context) error {
		if err := createPod(ctx, "shop:latest"); err == nil || !strings.Contains(err.Error(), "denied the request") {
			return fmt.Errorf("creating an invalid Pod: %w", err)
		}
		return createPod(ctx, "shop:v1")
	})
}

// awaitBundle waits until the caBundle has count CAs, and returns them.
func awaitBundle(t *testing.T, count int) (cas []*x509.Certificate) {
	t.Helper()
	poll(t, "the caBundle", func(context.Context) error {
		cas = nil
		for block, rest := pem.Decode(configuration(t).Webhooks[0].ClientConfig.CABundle); block != nil; block, rest = pem.Decode(rest) {
			ca, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return err
			}
			cas = append(cas, ca)
		}
		if len(cas) != count {
			return fmt.Errorf("the caBundle has %d certificates, want %d", len(cas), count)
		}
		return nil
	})
	return cas
}
