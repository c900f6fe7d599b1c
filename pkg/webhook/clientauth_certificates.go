// SPDX-License-Identifier: Apache-2.0

package webhook

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
)

// certificates judge client certificates. They do so apart from the TLS handshake: that cannot
// tell the client what is wrong in words, and is not done again when a CA is removed.
type certificates struct {
	cas   func() (*x509.CertPool, int)
	names []string
}

// A nameError says that a certificate is valid, but not one that may call.
type nameError struct{ cert *x509.Certificate }

func (e *nameError) Error() string {
	return "the client certificate is not one of those that may call this webhook server: it is for " + clip(namesText(e.cert))
}

// judge is a credentialKind.
func (c *certificates) judge(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errNoCredential
	}
	v, ok := r.Context().Value(verdictKey{}).(*verdict)
	if !ok {
		v = &verdict{}
	}
	return v.of(c, r.TLS.PeerCertificates)
}

// verify returns until when the verdict on the certificate holds, as long as the CAs are the
// same.
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
		// A certificate that is not valid yet will be.
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

// firstEnd is when a chain stops being valid.
func firstEnd(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, cert := range chain[1:] {
		if cert.NotAfter.Before(end) {
			end = cert.NotAfter
		}
	}
	return end
}

// hasName tells whether the certificate is for a name. What kind a name is of follows from its
// form, lest a URI be allowed in by a DNS name that is spelt the same.
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

// A verdict is what was found of the certificate of a connection, which stays the same.
type verdict struct {
	mu         sync.Mutex
	generation int // of the CAs; zero: not judged
	until      time.Time
	err        error
}

type verdictKey struct{}

func (v *verdict) of(c *certificates, chain []*x509.Certificate) error {
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

// connContext gives a connection a place for the verdict on its certificate.
func (a *authenticator) connContext(ctx context.Context, _ net.Conn) context.Context {
	if a == nil || a.certificates == nil {
		return ctx
	}
	return context.WithValue(ctx, verdictKey{}, &verdict{})
}

// tlsConfig asks clients for a certificate if it counts. What c itself asks for stays.
func (a *authenticator) tlsConfig(c *tls.Config) *tls.Config {
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

// parseCAs reads a PEM file of certificates. Text around them is tolerated, as in a caBundle.
func parseCAs(content []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), 0
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("there is a PEM block of type %s in it: it must hold certificates only, of the CAs", clip(fmt.Sprintf("%q", block.Type)))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d does not parse: %w", found+1, err)
		}
		pool.AddCert(cert)
		found++
	}
	switch whole := bytes.Count(content, []byte("-----BEGIN ")); {
	case whole > found:
		return nil, fmt.Errorf("of %d PEM blocks in it %d can be read: it may be half written", whole, found)
	case found == 0:
		return nil, errors.New("there is no certificate in it: write those of the CAs that sign client certificates, in PEM")
	}
	return pool, nil
}
