// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/metrics"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// limit is MaxInFlight of the server in TestServer.
const limit = 3

// The metrics endpoint of a running server must count calls with every outcome except refused, and failed handshakes.
// It must also show the state of the certificate.
func TestServer(t *testing.T) {
	registry := prometheus.NewRegistry()
	serving, pool, source := certificate(t)
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: "a.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")), TimeoutSeconds: new(int32(30)),
	}, decideByName)
	m := newMetrics(t, registry, metrics.Options{Hooks: []*webhook.Hook{hook}})
	if err := metrics.Source(registry, "serving", source); err != nil {
		t.Fatal(err)
	}
	base, ops := serve(t, registry, webhook.Options{
		TLSConfig: serving, Observers: []webhook.Observer{m}, MaxInFlight: limit,
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}, hook)

	honest := client(t, &tls.Config{RootCAs: pool})
	for _, name := range []string{"allowed", "mutated", "denied", "failed", "panicked"} {
		review(t, honest, base+hook.Path(), name)
	}
	review(t, honest, base+hook.Path()+"?timeout=1s", "timed_out")
	var blocked sync.WaitGroup
	for range limit {
		blocked.Go(func() { review(t, honest, base+hook.Path(), "blocked") })
	}
	for range limit {
		<-began
	}
	if busy, text := fmt.Sprintf("admitkit_server_calls_waiting{server=\"hooks\"} %d\n", limit), get(t, ops+"/metrics"); !strings.Contains(text, busy) {
		t.Errorf("no %s in %s", busy, text)
	}
	review(t, honest, base+hook.Path(), "shed")
	for range limit {
		unblock <- struct{}{}
	}
	blocked.Wait()
	await(t, ops, `admitkit_server_calls{server="hooks"} 0`) // the call counts until its answer is sent
	hangUp(t, honest, base+hook.Path())
	if _, err := client(t, &tls.Config{}).Get(base + hook.Path()); err == nil {
		t.Fatal("a client without the CA takes the certificate")
	}

	want := []string{`admitkit_tls_handshake_failures_total{class="untrusted"} 1`, `admitkit_certificate_trusted{source="serving"} 1`, `admitkit_calls_in_flight{type="mutating",webhook="a.example.com"} 0`, `admitkit_server_calls{server="hooks"} 0`}
	for _, outcome := range constants(t, "webhook", "Outcome") {
		count := 1
		switch webhook.Outcome(outcome) {
		case webhook.Refused:
			count = 0
		case webhook.Allowed:
			count += limit // the blocked calls
		}
		want = append(want, fmt.Sprintf(`admitkit_calls_total{outcome=%q,type="mutating",webhook="a.example.com"} %d`, outcome, count))
	}
	await(t, ops, want...) // the server sees the failed handshake only after the client does
}

// await waits until the metrics contain these lines.
func await(t *testing.T, ops string, lines ...string) {
	t.Helper()
	var missing []string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		text := get(t, ops+"/metrics")
		missing = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(text, line+"\n") })
		return len(missing) == 0, nil
	})
	if err != nil {
		t.Errorf("not in the metrics: %q", missing)
	}
}

// began receives a value when the handler of a blocked or canceled call begins. A value in unblock
// releases one blocked call.
var began, unblock = make(chan struct{}, limit), make(chan struct{})

func decideByName(ctx context.Context, req *webhook.Request[corev1.ConfigMap]) error {
	switch req.Name {
	case "mutated":
		req.Object.Data = map[string]string{"seen": "yes"}
	case "denied":
		return webhook.Deny("not this one")
	case "failed":
		return errors.New("the database is down")
	case "panicked":
		panic("oh no")
	case "blocked":
		began <- struct{}{}
		<-unblock
	case "timed_out":
		<-ctx.Done()
		return ctx.Err()
	case "canceled":
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// certificate returns the TLS configuration of a server, its CA pool and the certificate source.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool, certs.Source) {
	t.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	config, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Bundle)
	source := certs.Static(config.Certificates[0], ca.Bundle)
	return certs.TLSConfig(source), pool, source
}

// serve runs a server until the test ends. It returns the URLs of its hooks and of its metrics.
func serve(t *testing.T, reg prometheus.Registerer, o webhook.Options, hooks ...*webhook.Hook) (base, ops string) {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	o.Listener, o.OpsListener, o.ShutdownDelay = listen(), listen(), -1
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	server := webhook.NewServer(o, hooks...)
	if err := metrics.Server(reg, "hooks", server.Load); err != nil {
		t.Fatal(err)
	}
	go func() { stopped <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return "https://" + o.Listener.Addr().String(), "http://" + o.OpsListener.Addr().String()
}

func client(t *testing.T, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// hangUp calls the hook and closes the connection while the handler runs.
func hangUp(t *testing.T, c *http.Client, url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(reviewOf("canceled")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if _, err := c.Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// reviewOf returns an AdmissionReview of a ConfigMap with this name.
func reviewOf(name string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":"` + name + `",` +
		`"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},` +
		`"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}}}`
}

// review sends the hook an AdmissionReview of a ConfigMap with this name.
func review(t *testing.T, c *http.Client, url, name string) {
	answer, err := c.Post(url, "application/json", strings.NewReader(reviewOf(name)))
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := client(t, nil).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
