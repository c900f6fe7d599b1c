// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A signer signs client certificates.
type signer struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	above [][]byte // the intermediate certificates that clients present
}

func newSigner(tb testing.TB, name string) *signer {
	tb.Helper()
	return (*signer)(nil).intermediate(tb, name)
}

// intermediate returns a new signer with a certificate that s has signed, or that is self-signed if s is nil.
func (s *signer) intermediate(tb testing.TB, name string) *signer {
	tb.Helper()
	return s.signer(tb, subject(name))
}

func (s *signer) signer(tb testing.TB, template x509.Certificate) *signer {
	tb.Helper()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	next := &signer{}
	next.cert, next.key = s.sign(tb, template)
	if s != nil {
		next.above = append([][]byte{next.cert.Raw}, s.above...)
	}
	return next
}

func (s *signer) sign(tb testing.TB, template x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, parentKey := &template, key
	if s != nil {
		parent, parentKey = s.cert, s.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, &key.PublicKey, parentKey)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return cert, key
}

// issue returns a client certificate with its key and chain.
func (s *signer) issue(tb testing.TB, template x509.Certificate) *tls.Certificate {
	tb.Helper()
	if template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	cert, key := s.sign(tb, template)
	c := &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
	if s != nil {
		c.Certificate = append(c.Certificate, s.above...)
	}
	return c
}

func (s *signer) pem() string { return pemOf(s.cert.Raw) }

func pemOf(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func subject(commonName string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: commonName}}
}

// file writes a file and returns its path.
func file(tb testing.TB, content string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	rewrite(tb, path, content)
	return path
}

func rewrite(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// as returns a copy of the endpoint whose client presents this certificate, or none if cert is nil.
func (e *endpoint) as(cert *tls.Certificate) *endpoint {
	config := &tls.Config{RootCAs: e.client.Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	other, stop := *e, e.stop
	other.client = &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DialContext: e.dial}}
	other.stop = func() error {
		other.client.CloseIdleConnections()
		return stop()
	}
	return &other
}

func TestClientCertificates(t *testing.T) {
	ca, other := newSigner(t, "clients"), newSigner(t, "clients")
	below := ca.intermediate(t, "below")
	alone := (*signer)(nil).issue(t, subject("pinned"))
	now := time.Now()
	during := func(from, to time.Duration) x509.Certificate {
		c := subject("kube-apiserver")
		c.NotBefore, c.NotAfter = now.Add(from), now.Add(to)
		return c
	}
	incomplete := below.issue(t, subject("kube-apiserver"))
	incomplete.Certificate = incomplete.Certificate[:1]
	forServers := subject("kube-apiserver")
	forServers.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	forBoth := subject("kube-apiserver")
	forBoth.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	uri, err := url.Parse("spiffe://example.com/kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	rich := x509.Certificate{
		Subject:  pkix.Name{CommonName: "someone", Organization: []string{"masters"}},
		DNSNames: []string{"API.example.com", "spiffe://example.com/stolen", "10.0.0.2", "stolen@example.com"},
		URIs:     []*url.URL{uri}, EmailAddresses: []string{"api@example.com"},
		IPAddresses: []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("fd00::1")},
	}
	cas := file(t, "the CA of the clients\n"+ca.pem()+pemOf(alone.Certificate[0]))
	const invalid = "the client certificate is not valid: x509: "
	for _, in := range []struct {
		reason string
		names  []string
		cert   *tls.Certificate
		code   int // 0: passes
		want   string
	}{
		{reason: "signed by the CA", cert: ca.issue(t, subject("kube-apiserver"))},
		{reason: "for servers, too", cert: ca.issue(t, forBoth)},
		{reason: "with an intermediate", cert: below.issue(t, subject("kube-apiserver"))},
		{reason: "itself in the file", cert: alone},
		{reason: "none", code: 401, want: "the webhook server asks for a client certificate, and the call has none"},
		{reason: "of another CA of the same name", cert: other.issue(t, subject("kube-apiserver")), code: 401, want: invalid + "certificate signed by unknown authority"},
		{reason: "signed by itself", cert: (*signer)(nil).issue(t, subject("kube-apiserver")), code: 401, want: invalid + "certificate signed by unknown authority"},
		{reason: "without its intermediate", cert: incomplete, code: 401, want: invalid + "certificate signed by unknown authority"},
		{reason: "for servers only", cert: ca.issue(t, forServers), code: 401, want: invalid + "certificate specifies an incompatible key usage"},
		{reason: "expired", cert: ca.issue(t, during(-time.Hour, -time.Minute)), code: 401, want: invalid + "certificate has expired or is not yet valid"},
		{reason: "not valid yet", cert: ca.issue(t, during(time.Hour, 2*time.Hour)), code: 401, want: invalid + "certificate has expired or is not yet valid"},
		{reason: "by common name", names: []string{"a", "someone"}, cert: ca.issue(t, rich)},
		{reason: "by common name with a colon", names: []string{"system:kube-apiserver"}, cert: ca.issue(t, subject("system:kube-apiserver"))},
		{reason: "by common name with an @", names: []string{"api@hosts"}, cert: ca.issue(t, subject("api@hosts"))},
		{reason: "by DNS name", names: []string{"api.EXAMPLE.com"}, cert: ca.issue(t, rich)},
		{reason: "by URI", names: []string{"spiffe://example.com/kube-apiserver"}, cert: ca.issue(t, rich)},
		{reason: "by email address", names: []string{"api@example.com"}, cert: ca.issue(t, rich)},
		{reason: "by IP address", names: []string{"10.0.0.1"}, cert: ca.issue(t, rich)},
		{reason: "by IPv6 address", names: []string{"fd00:0::1"}, cert: ca.issue(t, rich)},
		{reason: "a URI in a DNS name", names: []string{"spiffe://example.com/stolen"}, cert: ca.issue(t, rich), code: 403},
		{reason: "a URI in the common name", names: []string{"spiffe://example.com/x"}, cert: ca.issue(t, subject("spiffe://example.com/x")), code: 403},
		{reason: "a URN in the common name", names: []string{"urn:x"}, cert: ca.issue(t, subject("urn:x")), code: 403},
		{reason: "an IP address in a DNS name", names: []string{"10.0.0.2"}, cert: ca.issue(t, rich), code: 403},
		{reason: "an email address in a DNS name", names: []string{"stolen@example.com"}, cert: ca.issue(t, rich), code: 403},
		{reason: "by no name of an organization", names: []string{"masters", "O=masters"}, cert: ca.issue(t, rich), code: 403,
			want: `the client certificate may not call this webhook server: it is for subject "CN=someone,O=masters", DNS name "API.example.com", `},
		{reason: "by no common name in capitals", names: []string{"Kube-Apiserver"}, cert: ca.issue(t, subject("kube-apiserver")), code: 403},
		{reason: "of the right name by another CA", names: []string{"kube-apiserver"}, cert: other.issue(t, subject("kube-apiserver")), code: 401, want: invalid},
		{reason: "without a name", names: []string{"kube-apiserver"}, cert: ca.issue(t, x509.Certificate{}), code: 403},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := mutating(label)
			e := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{CAFile: cas, Names: in.names}}, hook).as(in.cert)
			a := e.ask(t, hook, call{})
			if in.code == 0 {
				a.allowed(t, call{}, true)
				return
			}
			status := a.failed(t)
			if a.code != in.code || !strings.Contains(status.Message, in.want) {
				t.Errorf("got %d %q, want %d %q", a.code, status.Message, in.code, in.want)
			}
			if reason := map[int]string{401: "Unauthorized", 403: "Forbidden"}[in.code]; string(status.Reason) != reason {
				t.Errorf("got reason %s, want %s", status.Reason, reason)
			}
			if len(a.header["Retry-After"])+len(a.header["Www-Authenticate"]) > 0 {
				t.Errorf("got headers %v", a.header)
			}
		})
	}
}

// ClientAuth does not weaken the client authentication in the user's own TLSConfig. A configuration
// from GetConfigForClient does not weaken ClientAuth.
func TestClientCertificatesWithTheUsersTLSConfig(t *testing.T) {
	ca, other := newSigner(t, "clients"), newSigner(t, "others")
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	byConnection := func(c *tls.Config) *tls.Config {
		outer := c.Clone()
		outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c, nil }
		return outer
	}
	good, bad := ca.issue(t, subject("kube-apiserver")), other.issue(t, subject("kube-apiserver"))
	issuer, serving := certificate(t)
	serving.NextProtos = []string{"http/1.1"}
	strict := serving.Clone()
	strict.ClientAuth, strict.ClientCAs = tls.RequireAndVerifyClientCert, pool
	nobody := serving.Clone()
	nobody.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
	for _, in := range []struct {
		reason string
		config *tls.Config
		cert   *tls.Certificate
		code   int // 0: the handshake fails
	}{
		{"no configuration by connection", nobody, good, 200},
		{"no configuration by connection", nobody, bad, 401},
		{"one that asks for nothing", byConnection(serving), good, 200},
		{"one that asks for nothing", byConnection(serving), bad, 401},
		{"one that verifies", byConnection(strict), good, 200},
		{"one that verifies", byConnection(strict), bad, 0},
		{"the configuration verifies", strict, good, 200},
		{"the configuration verifies", strict, bad, 0},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := mutating(label)
			e := serve(t, webhook.Options{TLSConfig: in.config, ClientAuth: &webhook.ClientAuth{CAFile: file(t, ca.pem())}}, hook).as(in.cert)
			e.client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AppendCertsFromPEM(issuer.Bundle)
			a, err := e.try(t.Context(), hook.Path(), call{}.body())
			if a.code != in.code || (err == nil) != (in.code != 0) {
				t.Errorf("got %d %s, %v; want %d", a.code, a.body, err, in.code)
			}
		})
	}
}
