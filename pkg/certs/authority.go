// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// A KeyType is the type of the keys of the CA and of the serving certificates.
type KeyType string

// The key types. The API server accepts all of them.
const (
	ECDSAP256 KeyType = "ECDSA-P256"
	ECDSAP384 KeyType = "ECDSA-P384"
	RSA2048   KeyType = "RSA-2048"
	RSA4096   KeyType = "RSA-4096"
	Ed25519   KeyType = "Ed25519"
)

func (t KeyType) generate() (crypto.Signer, error) {
	switch t {
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("unknown key type %q: want one of %q", t, []KeyType{ECDSAP256, ECDSAP384, RSA2048, RSA4096, Ed25519})
}

// is reports whether a public key has the type t.
func (t KeyType) is(public crypto.PublicKey) bool {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		return t == ECDSAP256 && k.Curve == elliptic.P256() || t == ECDSAP384 && k.Curve == elliptic.P384()
	case *rsa.PublicKey:
		return t == RSA2048 && k.N.BitLen() == 2048 || t == RSA4096 && k.N.BitLen() == 4096
	case ed25519.PublicKey:
		return t == Ed25519
	}
	return false
}

// An authority is a CA. It is immutable.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer // nil after the CA has stopped signing, and for CAs of other sources
	// outlives is how long certificates of this CA may still be valid after the CA stops signing. It is the longest
	// such time of all replicas, because their options may differ.
	outlives time.Duration
}

// id returns the fingerprint of the CA's certificate. Names and keys do not identify a CA, because two CAs can have
// equal ones.
func (a *authority) id() string { return fingerprint(a.cert) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// authorityName is the prefix of the name of every CA that a SelfManaged source creates.
const authorityName = "admitkit CA of "

// newAuthority generates a CA that is valid for lifetime from now. NotBefore is earlier by skew.
func newAuthority(name string, t KeyType, now time.Time, lifetime, skew time.Duration) (*authority, error) {
	key, err := t.generate()
	if err != nil {
		return nil, err
	}
	var suffix [4]byte
	_, _ = rand.Read(suffix[:])    // never fails
	template := &x509.Certificate{ // CreateCertificate generates the serial number
		// Each CA has its own name, because verifiers look for the issuer by name first.
		Subject:   pkix.Name{CommonName: fmt.Sprintf("%s %s %x", name, now.UTC().Format(time.DateOnly), suffix)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot create a CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

// names are the hosts of a serving certificate.
type names struct {
	dns []string
	ips []net.IP
}

func (n names) equal(c *x509.Certificate) bool {
	return slices.Equal(n.dns, c.DNSNames) && slices.EqualFunc(n.ips, c.IPAddresses, net.IP.Equal)
}

// host returns one of the names, for the common name or to verify a certificate.
func (n names) host() string {
	if len(n.dns) > 0 {
		return n.dns[0]
	}
	return n.ips[0].String()
}

// issue returns a serving certificate with a new key. It expires no later than the CA.
func (a *authority) issue(n names, t KeyType, now, notAfter time.Time, skew time.Duration) (*tls.Certificate, error) {
	if a.key == nil {
		return nil, fmt.Errorf("the CA %q has no key", a.cert.Subject.CommonName)
	}
	key, err := t.generate()
	if err != nil {
		return nil, err
	}
	if notAfter.After(a.cert.NotAfter) {
		notAfter = a.cert.NotAfter
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: commonName(n.host())},
		DNSNames: n.dns, IPAddresses: n.ips,
		NotBefore: now.Add(-skew), NotAfter: notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot create a serving certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// commonName cuts a host name to the maximum length of a common name (RFC 5280, ub-common-name). Clients verify only
// the SANs.
func commonName(host string) string { return host[:min(len(host), 64)] }

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// parseBundle returns the certificates of a caBundle without duplicates. Like the API server, it ignores other text and
// certificates that do not parse.
func parseBundle(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && !slices.ContainsFunc(all, c.Equal) {
			all = append(all, c)
		}
	}
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseAuthority decodes a CA. The key may be missing.
func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	certs := parseBundle(certPEM)
	if len(certs) != 1 {
		return nil, fmt.Errorf("want one certificate, got %d", len(certs))
	}
	a := &authority{cert: certs[0]}
	if len(keyPEM) == 0 {
		return a, nil
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || !samePublicKey(key.Public(), a.cert.PublicKey) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	if err := a.cert.CheckSignatureFrom(a.cert); err != nil {
		return nil, fmt.Errorf("the certificate is not a self-signed CA: %w", err)
	}
	a.key = key
	return a, nil
}

func samePublicKey(a, b crypto.PublicKey) bool {
	x, err := x509.MarshalPKIXPublicKey(a)
	if err != nil {
		return false
	}
	y, err := x509.MarshalPKIXPublicKey(b)
	return err == nil && bytes.Equal(x, y)
}
