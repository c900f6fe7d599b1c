// SPDX-License-Identifier: Apache-2.0

package clientauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/devcert"
)

// An admitter is an Authenticator with a request that it accepts.
type admitter struct {
	name string
	*Authenticator
	bare *http.Request
}

func admitters(tb testing.TB) []admitter {
	tb.Helper()
	ca, err := devcert.NewCA()
	if err != nil {
		tb.Fatal(err)
	}
	certPEM, _, err := ca.Client("kube-apiserver")
	if err != nil {
		tb.Fatal(err)
	}
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		tb.Fatal(err)
	}
	file := func(content string) string {
		path := filepath.Join(tb.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	bare := presented("Bearer secret-0123456789")
	bare.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	all := []admitter{{name: "none", bare: bare}, {name: "certificate", bare: bare}, {name: "token", bare: bare}}
	for i, auth := range []*Config{
		nil, {CAFile: file(string(ca.Bundle)), Names: []string{"kube-apiserver"}}, {TokenFile: file("one-0123456789-x\ntwo-0123456789-x\nsecret-0123456789\n")},
	} {
		if all[i].Authenticator, err = New(auth, logr.Discard()); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

// onConnection returns the request with the context of a new connection.
func (a admitter) onConnection(ctx context.Context) *http.Request {
	return a.bare.WithContext(a.ConnContext(ctx))
}

// Check must not allocate for a later call on a connection, because a certificate is verified only once per connection.
func TestAllocsOfCheck(t *testing.T) {
	for _, a := range admitters(t) {
		r := a.onConnection(t.Context())
		if n := testing.AllocsPerRun(100, func() {
			if refused := a.Check(r); refused != nil {
				t.Error(refused)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for a call", a.name, n)
		}
	}
}

// BenchmarkCheck measures client authentication for the first and for later calls on a connection.
func BenchmarkCheck(b *testing.B) {
	for _, a := range admitters(b) {
		for _, first := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/first=%t", a.name, first), func(b *testing.B) {
				r := a.onConnection(b.Context())
				b.ReportAllocs()
				for b.Loop() {
					if first {
						r = a.onConnection(b.Context())
					}
					if refused := a.Check(r); refused != nil {
						b.Fatal(refused)
					}
				}
			})
		}
	}
}
