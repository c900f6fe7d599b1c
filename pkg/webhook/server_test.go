// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// These assignments check that a Server can run in a manager of controller-runtime, and that the webhook server of a
// manager is a Registrar.
var (
	_ manager.Runnable               = &webhook.Server{}
	_ manager.LeaderElectionRunnable = &webhook.Server{}
	_ webhook.Registrar              = crwebhook.Server(nil)
)

func TestStartReportsItsErrors(t *testing.T) {
	_, good := certificate(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	const noCertificate = "cannot start the webhook server: Options.TLSConfig has no certificate: set its Certificates or GetCertificate"
	probed := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "pods.example.com", Rules: everything,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: new("/readyz")}},
	}, admit)
	twins := []*webhook.Hook{mutating(label), mutating(label)}
	for _, in := range []struct {
		reason string
		o      webhook.Options
		hooks  []*webhook.Hook
		want   string
	}{
		{reason: "no TLS", want: noCertificate},
		{reason: "no certificate", o: webhook.Options{TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13}}, want: noCertificate},
		{reason: "the address is taken", o: webhook.Options{TLSConfig: good, Addr: taken.Addr().String()},
			want: "cannot start the webhook server: Options.Addr: listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{reason: "no address", o: webhook.Options{TLSConfig: good, Addr: "here"}, want: "cannot start the webhook server: Options.Addr: listen tcp: address here: missing port in address"},
		{reason: "all at once", hooks: twins, want: strings.Replace(noCertificate, ": ", ": webhooks pods.example.com and pods.example.com share the path /mutate/pods.example.com\n"+
			"two webhooks of one configuration have the name pods.example.com\n", 1)},
		{reason: "a probe's path", o: webhook.Options{TLSConfig: good, Addr: "127.0.0.1:0"}, hooks: []*webhook.Hook{probed},
			want: "cannot start the webhook server: webhook pods.example.com: path /readyz is reserved for probes: choose another with WithPath"},
		{reason: "no hook", o: webhook.Options{TLSConfig: good, Addr: "127.0.0.1:0"}, hooks: []*webhook.Hook{nil},
			want: "cannot start the webhook server: hook 0 is nil"},
		{reason: "the listener fails", o: webhook.Options{TLSConfig: good, Listener: broken{taken}}, want: "the webhook server stopped: out of files"},
	} {
		row(t, in.reason, func(t *testing.T) {
			if in.o.Addr == "" { // another process may listen at the default address
				in.o.Addr = "127.0.0.1:0"
			}
			server := webhook.NewServer(in.o, in.hooks...)
			if err := server.Start(t.Context()); err == nil || err.Error() != in.want {
				t.Errorf("\n got %v\nwant %s", err, in.want)
			}
			if addr, err := server.Addr(t.Context()); !strings.HasPrefix(in.want, "the webhook server stopped") && (err == nil || err.Error() != in.want) {
				t.Errorf("the address is %v, %v", addr, err)
			}
			if err := server.Start(t.Context()); err == nil || err.Error() != "the webhook server was already started" {
				t.Errorf("started again: %v", err)
			}
		})
	}
}

type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("out of files") }
func (broken) Close() error              { return nil }

func TestAddrWaitsForTheServerOrItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if addr, err := webhook.NewServer(webhook.Options{}).Addr(ctx); addr != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", addr, err)
	}
}

func TestAServerClosesItsListener(t *testing.T) {
	_, config := certificate(t)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, in := range []struct {
		reason string
		ctx    context.Context
		o      webhook.Options
		fails  bool
	}{
		{reason: "when it cannot start", ctx: t.Context(), fails: true},
		{reason: "when its context ends before it starts", ctx: stopped, o: webhook.Options{TLSConfig: config}},
	} {
		row(t, in.reason, func(t *testing.T) {
			l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
			in.o.Listener = l
			if err := webhook.NewServer(in.o).Start(in.ctx); (err != nil) != in.fails {
				t.Errorf("got %v", err)
			}
			<-l.closed
		})
	}
}

func TestPathsWithoutAHook(t *testing.T) {
	e := serve(t, webhook.Options{}, mutating(label))
	for path, want := range map[string]string{
		"/":                        "no hook is served at /",
		"/mutate":                  "no hook is served at /mutate",
		"/mutate/pods.example.com": "",
		"/mutate/Pods.example.com": "no hook is served at /mutate/Pods.example.com",
		"/mutate/pods.example.com/status?timeout=1s": "no hook is served at /mutate/pods.example.com/status",
	} {
		a := e.post(t, path, call{}.body())
		if want == "" {
			a.allowed(t, call{}, true)
		} else if status := a.failed(t); status.Message != want || status.Code != http.StatusNotFound {
			t.Errorf("%s: got %d %q", path, status.Code, status.Message)
		}
	}
	for _, probe := range []string{"/healthz", "/readyz"} {
		resp, err := e.client.Get(e.url + probe)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK || string(body) != "\"ok\"\n" || err != nil || resp.Body.Close() != nil {
			t.Errorf("%s: %d %q %v", probe, resp.StatusCode, body, err)
		}
	}
}

func TestServerOptionsReachTheHooks(t *testing.T) {
	logs := make(chan string, 10)
	sink := func(prefix string) logr.Logger {
		return funcr.New(func(_, line string) {
			if !strings.Contains(line, "the limits of") {
				logs <- prefix + line
			}
		}, funcr.Options{})
	}
	hook := mutating(label)
	e := serve(t, webhook.Options{Logger: sink("server: ")}, hook)
	if line := <-logs; !strings.HasPrefix(line, `server: "level"=0 "msg"="serving webhooks" "addr"="127.0.0.1:`) || !strings.HasSuffix(line, `" "hooks"=1`) {
		t.Errorf("got %s", line)
	}
	e.post(t, hook.Path(), nil).failed(t)
	if line := <-logs; !strings.HasPrefix(line, `server: "msg"="cannot decide`) {
		t.Errorf("got %s", line)
	}
	own := hook.WithLogger(sink("hook: "))
	small := serve(t, webhook.Options{Logger: sink("server: "), MaxBodyBytes: 2}, own)
	if <-logs; small.post(t, hook.Path(), []byte("123")).failed(t).Message != "the body is larger than the limit of 2 bytes" {
		t.Error("the limit of the server does not count")
	}
	<-logs
	smaller := serve(t, webhook.Options{Logger: sink("server: "), MaxBodyBytes: 2}, own.WithMaxBodyBytes(1))
	if <-logs; smaller.post(t, hook.Path(), []byte("123")).failed(t).Message != "the body is larger than the limit of 1 bytes" {
		t.Error("the limit of the hook does not count")
	}
	if line := <-logs; !strings.HasPrefix(line, `hook: "msg"="cannot decide`) {
		t.Errorf("got %s", line)
	}
}

func TestHTTPVersions(t *testing.T) {
	hook := mutating(label)
	e := serve(t, webhook.Options{}, hook)
	for name, want := range map[string]int{"http/1.1": 1, "h2": 2} {
		transport := e.client.Transport.(*http.Transport).Clone()
		transport.TLSClientConfig.NextProtos = []string{name}
		transport.ForceAttemptHTTP2 = name == "h2"
		e.client.Transport = transport
		a := e.post(t, hook.Path(), call{}.body())
		a.allowed(t, call{}, true)
		if a.major != want {
			t.Errorf("%s: spoke HTTP/%d", name, a.major)
		}
		transport.CloseIdleConnections()
	}
}

// TestIdleConnectionsOutliveThoseOfTheAPIServer waits longer than 90 s, after which the API server
// closes an idle connection. If the webhook server closed it first, a call could be lost.
func TestIdleConnectionsOutliveThoseOfTheAPIServer(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			hook := mutating(label)
			e := serveInMemory(t, webhook.Options{}, hook)
			var dialled atomic.Int32
			transport := e.client.Transport.(*http.Transport)
			transport.ForceAttemptHTTP2 = h2
			transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled.Add(1)
				return e.dial(ctx, network, addr)
			}
			for range 3 {
				e.post(t, hook.Path(), call{}.body()).allowed(t, call{}, true)
				<-time.After(91 * time.Second)
			}
			if n := dialled.Load(); n != 1 {
				t.Errorf("h2 %t: %d connections for three calls with 91 s between them", h2, n)
			}
		})
	}
}

func TestShutdownWaitsForTheCallsInFlight(t *testing.T) {
	for _, in := range []struct {
		reason string
		drain  time.Duration
		takes  time.Duration // how long the call takes
		after  time.Duration // when Start returns
		err    string
	}{
		{reason: "the longest call there is, by default", drain: -1, takes: 28 * time.Second, after: 28 * time.Second},
		{reason: "a call that takes longer than the drain", drain: 5 * time.Second, takes: 20 * time.Second, after: 5 * time.Second,
			err: "1 calls in flight were cut off after 5s"},
	} {
		row(t, in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrived := make(chan bool)
				var ctxErr error
				hook := mutating(func(ctx context.Context, _ *webhook.Request[corev1.Pod]) error {
					arrived <- true
					select {
					case <-time.After(in.takes):
					case <-ctx.Done():
						ctxErr = ctx.Err()
					}
					return nil
				})
				e := serveInMemory(t, webhook.Options{DrainTimeout: in.drain}, hook)
				e.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
				answers := make(chan error)
				go func() {
					_, err := e.try(t.Context(), hook.Path()+"?timeout=30s", call{}.body())
					answers <- err
				}()
				<-arrived
				stopping := make(chan error)
				start := time.Now()
				go func() { stopping <- e.stop() }()
				synctest.Wait()
				e.post(t, hook.Path(), call{}.body()).turnedAway(t, http.StatusServiceUnavailable, "0")
				answerErr := <-answers
				if err := <-stopping; (err == nil) != (in.err == "") || err != nil && err.Error() != in.err {
					t.Errorf("Start returned %v, want %q", err, in.err)
				}
				// The upper limit leaves time for the connections to close.
				if took := time.Since(start); took < in.after || took > in.after+6*time.Second {
					t.Errorf("Start returned after %s, want %s", took, in.after)
				}
				if (answerErr != nil || ctxErr != nil) != (in.err != "") {
					t.Errorf("the call in flight: %v, and its context: %v", answerErr, ctxErr)
				}
				synctest.Wait()
			})
		})
	}
}

func TestHooksMountAnywhere(t *testing.T) {
	hooks := []*webhook.Hook{mutating(label), validating(admit)}
	runtimeServer := crwebhook.NewServer(crwebhook.Options{})
	if err := webhook.Register(runtimeServer, hooks...); err != nil {
		t.Fatal(err)
	}
	plain := http.NewServeMux()
	for _, hook := range hooks {
		plain.Handle(hook.Path(), hook)
	}
	for name, handler := range map[string]http.Handler{"the webhook server of a manager": runtimeServer.WebhookMux(), "a mux": plain} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(handler)
			defer server.Close()
			e := &endpoint{url: server.URL, client: server.Client()}
			for _, hook := range hooks {
				e.ask(t, hook, call{}).allowed(t, call{}, hook == hooks[0])
			}
		})
	}
}

func TestRegisterMountsAllOrNone(t *testing.T) {
	on := mux{}
	bad := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "bad"}, label)
	if err := webhook.Register(on, mutating(label), bad); err == nil || len(on) != 0 {
		t.Errorf("got %v and mounted %v", err, on)
	}
	if err := webhook.Register(on, mutating(label), validating(admit)); err != nil || len(on) != 2 || on["/mutate/pods.example.com"] == nil {
		t.Errorf("got %v and mounted %v", err, on)
	}
}
