// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// An endpoint is a running server with a client for it.
type endpoint struct {
	server *webhook.Server
	url    string
	ca     *devcert.CA
	client *http.Client
	dial   func(ctx context.Context, network, addr string) (net.Conn, error) // nil for TCP
	// stop ends the server and returns what Start returned.
	stop func() error
	// leaveIdle makes stop leave the idle connections of the client open.
	leaveIdle bool
}

// serve runs a server until the test ends. Unless o.Listener is set, the server listens on a free loopback port.
func serve(tb testing.TB, o webhook.Options, hooks ...*webhook.Hook) *endpoint {
	tb.Helper()
	ca, config := certificate(tb)
	if o.TLSConfig == nil {
		o.TLSConfig = config
	}
	if o.Listener == nil {
		o.Addr = "127.0.0.1:0"
	}
	if o.ShutdownDelay == 0 {
		o.ShutdownDelay = -1
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 1 // do not wait for clients to close their connections
	}
	server := webhook.NewServer(o, hooks...)
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // outlives the test's own context, for its cleanup
	started := make(chan error, 1)
	go func() { started <- server.Start(ctx) }()
	addr, err := server.Addr(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Bundle)
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("redirected: the API server would lose the body")
		},
	}
	stopped := make(chan struct{})
	var stopErr error
	go func() { stopErr = <-started; close(stopped) }()
	e := &endpoint{server: server, url: "https://" + addr.String(), ca: ca, client: client}
	e.stop = func() error {
		if !e.leaveIdle {
			client.CloseIdleConnections()
		}
		cancel()
		<-stopped
		return stopErr
	}
	tb.Cleanup(func() { _ = e.stop() })
	return e
}

// ask sends a call to the path of the hook and returns the answer. It fails the test if there is none.
func (e *endpoint) ask(tb testing.TB, hook *webhook.Hook, c call) answer {
	tb.Helper()
	return e.post(tb, hook.Path()+"?timeout=5s", c.body())
}

// certificate returns a new CA and a TLS configuration with a serving certificate from it.
func certificate(tb testing.TB) (*devcert.CA, *tls.Config) {
	tb.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		tb.Fatal(err)
	}
	config, err := ca.Serving("127.0.0.1", "localhost", "hooks.shop.svc")
	if err != nil {
		tb.Fatal(err)
	}
	return ca, config
}

// serveInMemory runs a server without a network, for tests with a fake clock (testing/synctest).
func serveInMemory(tb testing.TB, o webhook.Options, hooks ...*webhook.Hook) *endpoint {
	tb.Helper()
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	o.Listener = l
	if o.DrainTimeout == 0 { // with a fake clock, waiting takes no time
		o.DrainTimeout = time.Minute
	}
	e := serve(tb, o, hooks...)
	e.dial = l.dial
	e.client.Transport.(*http.Transport).DialContext = l.dial
	return e
}

// A listener accepts connections in memory.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := memoryPipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, client.Close(), server.Close())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), client.Close(), server.Close())
	}
}

func (l *listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// post sends a body to a path, which may have a query, and returns the answer. It fails the test if there is none.
func (e *endpoint) post(tb testing.TB, path string, body []byte) answer {
	tb.Helper()
	a, err := e.try(tb.Context(), path, body)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func (e *endpoint) try(ctx context.Context, path string, body []byte) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	got, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	return answer{code: resp.StatusCode, header: resp.Header, body: got, major: resp.ProtoMajor}, err
}

// roots returns a pool with the CA of the server, for clients.
func (e *endpoint) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.ca.Bundle)
	return roots
}

// tlsInsecure does not verify certificates. It is for clients that do not know the server's CA.
var tlsInsecure = tls.Config{InsecureSkipVerify: true}

// apiServerClient returns the API server's own webhook client.
func apiServerClient(tb testing.TB, config webhookutil.ClientConfig, services webhookutil.ServiceResolver) *rest.RESTClient {
	tb.Helper()
	manager, err := webhookutil.NewClientManager([]schema.GroupVersion{admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion},
		admissionv1beta1.AddToScheme, admissionv1.AddToScheme)
	if err != nil {
		tb.Fatal(err)
	}
	resolver, err := webhookutil.NewDefaultAuthenticationInfoResolver("")
	if err != nil {
		tb.Fatal(err)
	}
	manager.SetAuthenticationInfoResolver(resolver)
	if services == nil {
		services = webhookutil.NewDefaultServiceResolver()
	}
	manager.SetServiceResolver(services)
	client, err := manager.HookClient(config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// clientCertificate returns a self-signed client certificate and the pool that trusts it.
func clientCertificate(tb testing.TB) (tls.Certificate, *x509.CertPool) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
