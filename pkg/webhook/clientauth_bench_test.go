// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/devcert"
)

// BenchmarkAdmit is what client authentication costs a call: by a certificate, that of a
// connection that is judged already, and that of a new one.
func BenchmarkAdmit(b *testing.B) {
	ca, err := devcert.NewCA()
	if err != nil {
		b.Fatal(err)
	}
	certPEM, _, err := ca.Client("kube-apiserver")
	if err != nil {
		b.Fatal(err)
	}
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		b.Fatal(err)
	}
	file := func(content string) string {
		path := filepath.Join(b.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	bare := presented("Bearer secret")
	bare.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	certificate := &ClientAuth{CAFile: file(string(ca.Bundle)), Names: []string{"kube-apiserver"}}
	for _, in := range []struct {
		name string
		auth *ClientAuth
		each bool // call comes on a new connection
	}{
		{"none", nil, false},
		{"certificate", certificate, false},
		{"certificate-new", certificate, true},
		{"token", &ClientAuth{TokenFile: file("one\ntwo\nsecret\n")}, false},
	} {
		b.Run(in.name, func(b *testing.B) {
			a, err := newAuthenticator(in.auth, logr.Discard())
			if err != nil {
				b.Fatal(err)
			}
			onConnection := func() *http.Request { return bare.WithContext(a.connContext(b.Context(), nil)) }
			r := onConnection()
			b.ReportAllocs()
			for b.Loop() {
				if in.each {
					r = onConnection()
				}
				if refused := a.admit(r); refused != nil {
					b.Fatal(refused)
				}
			}
		})
	}
}
