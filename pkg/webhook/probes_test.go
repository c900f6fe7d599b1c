// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var _ healthz.Checker = (&webhook.Server{}).Ready

func TestReadyAsksTheSource(t *testing.T) {
	var ready atomic.Pointer[error]
	notYet := errors.New("the caBundle of shop does not trust the certificate yet")
	ready.Store(&notYet)
	e := serve(t, webhook.Options{Ready: func(context.Context) error { return *ready.Load() }}, mutating(label))
	if code, body := e.probe(t, e.url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, `"message":"`+notYet.Error()+`"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := e.probe(t, e.url+"/healthz"); code != http.StatusOK || body != "\"ok\"\n" {
		t.Errorf("%d %s", code, body)
	}
	ready.Store(new(error))
	if code, body := e.probe(t, e.url+"/readyz"); code != http.StatusOK || body != "\"ok\"\n" {
		t.Errorf("%d %s", code, body)
	}
	if err := webhook.NewServer(webhook.Options{}).Ready(&http.Request{}); err == nil || err.Error() != "the webhook server does not listen yet" {
		t.Errorf("got %v", err)
	}
}

// TestOpsGoOnUntilTheEnd asks for metrics and probes while the server stops.
func TestOpsGoOnUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorman()
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
	if err := unserved.Start(t.Context()); err == nil || err.Error() != "cannot start the webhook server: Options.Metrics is served nowhere: set OpsAddr or OpsListener" {
		t.Errorf("got %v", err)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
