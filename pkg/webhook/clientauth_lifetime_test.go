// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// This test changes the CA file while a connection is open. Calls on the connection must be refused once the CA of its
// certificate is removed, accepted once the CA is added again, and refused once the certificate has expired.
func TestClientCertificatesOnAnOpenConnection(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { certificatesOfOneConnection(t, protocol) })
		})
	}
}

func certificatesOfOneConnection(t *testing.T, protocol string) {
	oldCA, newCA := newSigner(t, "old"), newSigner(t, "new")
	template := subject("kube-apiserver")
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(100*time.Second)
	cas, hook := file(t, oldCA.pem()), mutating(label)
	e := serveInMemory(t, webhook.Options{ClientAuth: &webhook.ClientAuth{CAFile: cas}}, hook).as(oldCA.issue(t, template))
	var dialled atomic.Int32
	transport := e.client.Transport.(*http.Transport)
	transport.ForceAttemptHTTP2 = protocol == "h2"
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled.Add(1)
		return e.dial(ctx, network, addr)
	}
	for _, step := range []struct {
		why  string
		do   func()
		code int
	}{
		{"at first", func() {}, 200},
		{"the new CA is added", func() { rewrite(t, cas, oldCA.pem()+newCA.pem()) }, 200},
		{"the old CA is removed", func() { rewrite(t, cas, newCA.pem()) }, 401},
		{"a broken file is ignored", func() { rewrite(t, cas, oldCA.pem()[:100]) }, 401},
		{"the old CA is back", func() { rewrite(t, cas, oldCA.pem()) }, 200},
		{"an empty file is ignored", func() { rewrite(t, cas, "") }, 200},
		{"a missing file is ignored", func() { os.Remove(cas) }, 200},
		{"the certificate is valid for 7 s more", func() { <-time.After(5 * time.Second) }, 200},
		{"and has expired", func() {}, 401},
	} {
		step.do()
		<-time.After(11 * time.Second)
		if a := e.ask(t, hook, call{}); a.code != step.code {
			t.Errorf("%s: got %d %s, want %d", step.why, a.code, a.body, step.code)
		}
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	if err := e.stop(); err != nil {
		t.Error(err)
	}
}

// A client certificate is accepted from its NotBefore time until any certificate of its chain expires. If it has two
// valid chains, the chain that expires later counts. The test makes a call each second, on a connection that stays
// open.
func TestClientCertificatesFollowTheCAFile(t *testing.T) {
	for _, in := range []struct {
		reason string
		// issue returns a certificate and the content of the CA file. The server must accept the certificate from the
		// second first to the second last of the test.
		issue       func(t *testing.T, until func(seconds int) x509.Certificate) (cert *tls.Certificate, cas string)
		first, last int // seconds
	}{
		{"not valid yet", func(t *testing.T, until func(int) x509.Certificate) (*tls.Certificate, string) {
			ca, template := newSigner(t, "ca"), until(100)
			template.NotBefore = time.Now().Add(10 * time.Second)
			return ca.issue(t, template), ca.pem()
		}, 10, 100},
		{"the intermediate ends first", func(t *testing.T, until func(int) x509.Certificate) (*tls.Certificate, string) {
			ca := newSigner(t, "ca")
			return ca.signer(t, until(30)).issue(t, until(100)), ca.pem()
		}, 0, 30},
		{"the CA ends first", func(t *testing.T, until func(int) x509.Certificate) (*tls.Certificate, string) {
			ca := (*signer)(nil).signer(t, until(20))
			return ca.intermediate(t, "below").issue(t, until(100)), ca.pem()
		}, 0, 20},
		{"of two chains one ends first", func(t *testing.T, until func(int) x509.Certificate) (*tls.Certificate, string) {
			short, long := (*signer)(nil).signer(t, until(20)), (*signer)(nil).signer(t, until(60))
			below := short.signer(t, subject("below"))
			twin := below.twin(t, long)
			cert := below.issue(t, until(100))
			cert.Certificate = append(cert.Certificate, twin.Raw)
			return cert, short.pem() + long.pem()
		}, 0, 60},
	} {
		row(t, in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				cert, cas := in.issue(t, func(seconds int) x509.Certificate {
					c := subject(fmt.Sprint("until ", seconds))
					c.NotBefore, c.NotAfter = start.Add(-time.Hour), start.Add(time.Duration(seconds)*time.Second)
					return c
				})
				hook := mutating(label)
				e := serveInMemory(t, webhook.Options{ClientAuth: &webhook.ClientAuth{CAFile: file(t, cas)}}, hook).as(cert)
				<-time.After(500 * time.Millisecond)
				for s := range in.last + 20 {
					want := http.StatusOK
					if s < in.first || s >= in.last {
						want = http.StatusUnauthorized
					}
					if a := e.ask(t, hook, call{}); a.code != want && s != in.first { // a failed verification is cached for a second
						t.Fatalf("after %d s: got %d %s, want %d", s, a.code, a.body, want)
					}
					<-time.After(time.Second)
				}
				if err := e.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// twin returns a certificate for the same key and name that another signer has signed.
func (s *signer) twin(tb testing.TB, by *signer) *x509.Certificate {
	tb.Helper()
	template := *s.cert
	template.SerialNumber, template.AuthorityKeyId = nil, nil
	der, err := x509.CreateCertificate(rand.Reader, &template, by.cert, &s.key.PublicKey, by.key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return cert
}

// A resumed TLS session has the certificate of its first handshake, which TLS does not verify again. This test removes
// the CA before it resumes a session. The call must be refused.
func TestClientCertificatesOfResumedSessions(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			oldCA, newCA := newSigner(t, "old"), newSigner(t, "new")
			cas, hook := file(t, oldCA.pem()), mutating(label)
			e := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{CAFile: cas, ReloadInterval: time.Millisecond}}, hook).
				as(oldCA.issue(t, subject("kube-apiserver")))
			transport := e.client.Transport.(*http.Transport)
			transport.DisableKeepAlives, transport.ForceAttemptHTTP2 = true, false
			transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			transport.TLSClientConfig.MaxVersion = version
			e.ask(t, hook, call{}).allowed(t, call{}, true)
			rewrite(t, cas, newCA.pem())
			err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
				resp, err := e.client.Post(e.url+hook.Path(), "application/json", bytes.NewReader(call{}.body()))
				if err != nil {
					return false, err
				}
				if !resp.TLS.DidResume {
					return false, errors.New("the session was not resumed")
				}
				return resp.StatusCode == http.StatusUnauthorized, resp.Body.Close()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
