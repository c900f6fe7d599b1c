// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"
)

// An authority is a CA whose certificates can be invalid.
type authority struct {
	bundle []byte
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// newAuthority returns a CA. The changes are made to its certificate before it is signed.
func newAuthority(t *testing.T, change ...func(*x509.Certificate)) *authority {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "hook CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	a := &authority{}
	a.cert, a.key = sign(t, template, nil, change)
	a.bundle = pemOf(a.cert)
	return a
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// serving returns a serving certificate for a host.
func (a *authority) serving(t *testing.T, host string, change ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "hook"}, DNSNames: []string{host}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	cert, key := sign(t, template, a, change)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func sign(t *testing.T, template *x509.Certificate, by *authority, change []func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	for _, c := range change {
		c(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if by == nil {
		by = &authority{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert, key
}
