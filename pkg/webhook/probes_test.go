// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ healthz.Checker = (&webhook.Server{}).Ready

// TestReadyCallsOptionsReady checks that readiness depends on Options.Ready. Only probes at OpsAddr may get its error,
// and probes at the hooks' address must not.
func TestReadyCallsOptionsReady(t *testing.T) {
	var ready atomic.Pointer[error]
	notYet := errors.New("the Secret shop/certs does not exist")
	ready.Store(&notYet)
	_, config := certificate(t)
	server := webhook.NewServer(webhook.Options{
		TLSConfig: config, Addr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0", ShutdownDelay: -1, Ready: func(context.Context) error { return *ready.Load() },
	}, mutating(label))
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- server.Start(ctx) }()
	addr, err := server.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ops, err := server.OpsAddr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tlsInsecure}}}
	hooks, plain := "https://"+addr.String(), "http://"+ops.String()
	check := func(url string, code int, text string) {
		t.Helper()
		if got, body := e.probe(t, url); got != code || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s", url, got, body)
		}
	}
	check(hooks+"/readyz", http.StatusServiceUnavailable, `"message":"the server is not ready; its log has the reason"`)
	check(plain+"/readyz", http.StatusServiceUnavailable, `"message":"the Secret shop/certs does not exist"`)
	check(hooks+"/healthz", http.StatusOK, "\"ok\"\n")
	if err := server.Ready(httptest.NewRequest(http.MethodGet, "/", nil)); !errors.Is(err, notYet) { //nolint:noctx // none is needed
		t.Errorf("the manager gets %v", err)
	}
	ready.Store(new(error))
	check(hooks+"/readyz", http.StatusOK, "\"ok\"\n")
	check(plain+"/readyz", http.StatusOK, "\"ok\"\n")
	if err := webhook.NewServer(webhook.Options{}).Ready(&http.Request{}); err == nil || err.Error() != "the webhook server is not listening yet" {
		t.Errorf("got %v", err)
	}
	e.client.CloseIdleConnections()
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestReadinessIsLoggedWhenItChanges checks that probes are logged only if the server becomes ready or stops being
// ready, or if the reason changes.
func TestReadinessIsLoggedWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ready error
		meanwhile := func(context.Context) {}
		log := &logbook{}
		e := serveInMemory(t, webhook.Options{
			Ready: func(ctx context.Context) error {
				meanwhile(ctx)
				return errors.Join(ready, ctx.Err())
			}, Logger: funcr.New(log.write, funcr.Options{Verbosity: 1}),
		}, mutating(label))
		probe := func(reason string) {
			ready = nil
			if reason != "" {
				ready = errors.New(reason)
			}
			for range 3 {
				e.probe(t, e.url+"/readyz")
			}
		}
		probe("no certificate")
		probe("no CA") // too soon after the first
		<-time.After(time.Minute)
		probe("no certificate")
		probe("no CA since 1m")
		probe("")
		gone, cancel := context.WithCancel(t.Context())
		meanwhile = func(ctx context.Context) { cancel(); <-ctx.Done() }
		if _, err := e.try(gone, "/readyz", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		meanwhile = func(context.Context) {}
		probe("")
		probe("no certificate")
		var got []string
		for _, line := range log.with("the webhook server is ") {
			_, line, _ = strings.Cut(line, `"msg"="the webhook server is `)
			got = append(got, line)
		}
		soon := `not ready" "reason"="no CA"` // at V(1)
		if want := []string{`not ready" "reason"="no certificate"`, soon, soon, soon, `not ready" "reason"="no CA since 1m"`, `ready"`, `not ready" "reason"="no certificate"`}; !slices.Equal(got, want) {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
	})
}

// TestOpsAddressServesUntilTheEnd requests metrics and probes while the server stops. They must be served until the
// last call is answered.
func TestOpsAddressServesUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlockingHandler()
		hook := mutating(d.handle)
		ops := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
		e := serveInMemory(t, webhook.Options{
			OpsListener: ops, ShutdownDelay: time.Second,
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1") }),
		}, hook)
		plain := &endpoint{url: "http://ops", client: &http.Client{Transport: &http.Transport{DialContext: ops.dial}}}
		check := func(when string, ready int) {
			t.Helper()
			for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": ready, hook.Path(): 404} {
				if code, body := plain.probe(t, plain.url+path); code != want || path == "/metrics" && body != "up 1" {
					t.Errorf("%s %s: %d %s", when, path, code, body)
				}
			}
		}
		check("serving", 200)
		if code, _ := e.probe(t, e.url+"/metrics"); code != http.StatusNotFound {
			t.Errorf("metrics at the hooks' address: %d", code)
		}
		got, stopped := make(chan answer), make(chan error)
		go func() { got <- e.ask(t, hook, call{}) }()
		<-d.arrived
		go func() { stopped <- e.stop() }()
		synctest.Wait()
		check("in the delay", 503)
		<-time.After(2 * time.Second)
		check("draining", 503)
		d.leave <- true
		if a := <-got; a.code != http.StatusOK {
			t.Errorf("%d %s", a.code, a.body)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		<-ops.closed
		plain.client.CloseIdleConnections()
	})
}

func TestOpsAddr(t *testing.T) {
	_, config := certificate(t)
	if _, err := webhook.NewServer(webhook.Options{}).OpsAddr(t.Context()); err == nil || !strings.Contains(err.Error(), "set Options.OpsAddr") {
		t.Errorf("got %v", err)
	}
	server := webhook.NewServer(webhook.Options{TLSConfig: config, Addr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0", ShutdownDelay: -1}, mutating(label))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error)
	go func() { stopped <- server.Start(ctx) }()
	addr, err := server.OpsAddr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plain := &endpoint{client: &http.Client{Transport: &http.Transport{}}}
	if code, _ := plain.probe(t, "http://"+addr.String()+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d", code)
	}
	plain.client.CloseIdleConnections()

	other := webhook.NewServer(webhook.Options{TLSConfig: config, Addr: "127.0.0.1:0", OpsAddr: addr.String()})
	want := "cannot start the webhook server: Options.OpsAddr: listen tcp " + addr.String() + ": bind: address already in use"
	if err := other.Start(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := other.OpsAddr(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	unserved := webhook.NewServer(webhook.Options{TLSConfig: config, Addr: "127.0.0.1:0", Metrics: http.NotFoundHandler()})
	if err := unserved.Start(t.Context()); err == nil || err.Error() != "cannot start the webhook server: Options.Metrics is not served: set OpsAddr or OpsListener" {
		t.Errorf("got %v", err)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
