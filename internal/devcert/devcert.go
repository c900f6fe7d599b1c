// SPDX-License-Identifier: Apache-2.0

// Package devcert generates short-lived certificates for development, demos and tests. They are valid for at most two
// weeks and are not meant for production.
package devcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"
)

// A CA is a certificate authority. It signs serving and client certificates.
type CA struct {
	// Bundle is the CA certificate in PEM: the caBundle of a webhook configuration.
	Bundle []byte
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// NewCA generates a CA. It is valid for two weeks.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("admitkit throw-away CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("cannot create the CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &CA{Bundle: bundle, cert: cert, key: key}, nil
}

// Serving returns the TLS configuration of a server, with a new certificate for the given host names and IP
// addresses.
func (ca *CA) Serving(hosts ...string) (*tls.Config, error) {
	template := certificate("admitkit throw-away webhook")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, key, err := ca.sign(template)
	if err != nil {
		return nil, fmt.Errorf("cannot create a serving certificate: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, nil
}

// Client returns a new client certificate for a common name, with its key, in PEM. The API server reads organizations as
// groups.
func (ca *CA) Client(commonName string, organizations ...string) (cert, key []byte, err error) {
	template := certificate(commonName)
	template.Subject.Organization = organizations
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, private, err := ca.sign(template)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a client certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// sign returns a certificate with a new key.
func (ca *CA) sign(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err = x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	return der, key, err
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{ // without a serial number, CreateCertificate generates one
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), // allows for clock skew
		NotAfter:  time.Now().Add(14 * 24 * time.Hour),
	}
}
