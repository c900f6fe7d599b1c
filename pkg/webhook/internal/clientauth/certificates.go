// SPDX-License-Identifier: Apache-2.0

package clientauth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// certificates verifies client certificates. The TLS handshake does not verify them, because it
// cannot send the client a message, and because it is not repeated when a CA is removed.
type certificates struct {
	cas   func() (*x509.CertPool, int)
	names []string
}

// A nameError is the error for a valid certificate that has none of the names in Config.Names.
type nameError struct{ cert *x509.Certificate }

func (e *nameError) Error() string {
	return "the client certificate may not call this webhook server: it is for " + reply.Clip(namesText(e.cert))
}

// check is the check function for client certificates. It uses the stored verification of the connection, if there is
// one.
func (c *certificates) check(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errNoCredential
	}
	v, ok := r.Context().Value(resultKey{}).(*verification)
	if !ok {
		v = &verification{}
	}
	return v.of(c, r.TLS.PeerCertificates)
}

// verify verifies a certificate. The result is valid until the returned time, unless the CAs change.
func (c *certificates) verify(cas *x509.CertPool, chain []*x509.Certificate, now time.Time) (until time.Time, err error) {
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	verified, err := chain[0].Verify(x509.VerifyOptions{
		Roots: cas, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		// The certificate may become valid later.
		return now.Add(time.Second), fmt.Errorf("the client certificate is not valid: %w", err)
	}
	for _, one := range verified {
		if end := firstEnd(one); end.After(until) {
			until = end
		}
	}
	if len(c.names) > 0 && !slices.ContainsFunc(c.names, func(name string) bool { return hasName(chain[0], name) }) {
		err = &nameError{chain[0]}
	}
	return until, err
}

// firstEnd returns the earliest expiry time of the certificates in a chain.
func firstEnd(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, cert := range chain[1:] {
		if cert.NotAfter.Before(end) {
			end = cert.NotAfter
		}
	}
	return end
}

// hasName reports whether the certificate contains a name. The form of the name decides which fields
// it is compared with, so that a URI never matches a DNS name.
func hasName(cert *x509.Certificate, name string) bool {
	ip, err := netip.ParseAddr(name)
	switch {
	case strings.Contains(name, "://"), strings.HasPrefix(name, "urn:"):
		for _, uri := range cert.URIs {
			if uri.String() == name {
				return true
			}
		}
		return false
	case err == nil:
		return slices.ContainsFunc(cert.IPAddresses, func(have net.IP) bool { return have.Equal(ip.AsSlice()) })
	case strings.Contains(name, "@"):
		return cert.Subject.CommonName == name || slices.Contains(cert.EmailAddresses, name)
	}
	return cert.Subject.CommonName == name ||
		slices.ContainsFunc(cert.DNSNames, func(have string) bool { return strings.EqualFold(have, name) })
}

func namesText(cert *x509.Certificate) string {
	names := []string{fmt.Sprintf("subject %q", cert.Subject.String())}
	for _, name := range cert.DNSNames {
		names = append(names, fmt.Sprintf("DNS name %q", name))
	}
	for _, uri := range cert.URIs {
		names = append(names, fmt.Sprintf("URI %q", uri))
	}
	for _, address := range cert.EmailAddresses {
		names = append(names, fmt.Sprintf("email address %q", address))
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, "IP address "+ip.String())
	}
	return strings.Join(names, ", ")
}

// A verification is the result of verifying the certificate of one connection.
type verification struct {
	mu         sync.Mutex
	generation int // of the CAs, zero before the first verification
	until      time.Time
	err        error
}

type resultKey struct{}

func (v *verification) of(c *certificates, chain []*x509.Certificate) error {
	cas, generation := c.cas()
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.generation != generation || now.After(v.until) {
		v.generation = generation
		v.until, v.err = c.verify(cas, chain, now)
	}
	return v.err
}

// ConnContext returns a context that stores the verification of the connection's certificate.
func (a *Authenticator) ConnContext(ctx context.Context) context.Context {
	if a == nil || a.certificates == nil {
		return ctx
	}
	return context.WithValue(ctx, resultKey{}, &verification{})
}

// TLSConfig changes c to request client certificates if CAFile is set. It keeps a stricter setting in
// c.
func (a *Authenticator) TLSConfig(c *tls.Config) *tls.Config {
	if a == nil || a.certificates == nil {
		return c
	}
	c.ClientAuth = max(c.ClientAuth, tls.RequestClientCert)
	if other := c.GetConfigForClient; other != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := other(hello)
			if c == nil || err != nil || c.ClientAuth != tls.NoClientCert {
				return c, err
			}
			c = c.Clone()
			c.ClientAuth = tls.RequestClientCert
			return c, nil
		}
	}
	return c
}

// parseCAs reads a PEM file of certificates. It ignores text around the PEM blocks, as the API server does in a
// caBundle.
func parseCAs(content []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), 0
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a PEM block is of type %s: the file must hold CA certificates only", reply.Clip(fmt.Sprintf("%q", block.Type)))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be parsed: %w", found+1, err)
		}
		pool.AddCert(cert)
		found++
	}
	switch whole := bytes.Count(content, []byte("-----BEGIN ")); {
	case whole > found:
		return nil, fmt.Errorf("only %d of %d PEM blocks can be read: the file may be half written", found, whole)
	case found == 0:
		return nil, errors.New("the file holds no certificate: add the CAs that sign client certificates, in PEM")
	}
	return pool, nil
}
