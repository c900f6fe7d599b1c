// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	errStartedTwice = errors.New("the certificate source was already started")
	errNotStarted   = errors.New("there is no serving certificate yet: the source is starting, or was not started")
)

// roots are the CAs that clients trust. A nil *roots means that they are unknown: it trusts every
// certificate.
type roots struct {
	text []byte
	pool *x509.CertPool
}

func newRoots(text []byte) (*roots, error) {
	certificates := parseBundle(text)
	if len(certificates) == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	r := &roots{text: text, pool: x509.NewCertPool()}
	for _, c := range certificates {
		r.pool.AddCert(c)
	}
	return r, nil
}

func (r *roots) pem() []byte {
	if r == nil {
		return nil
	}
	return bytes.Clone(r.text)
}

// verify checks the chain as the API server does, except for the name, and returns the CA of the
// chain.
func (r *roots) verify(c *tls.Certificate, now time.Time) (*x509.Certificate, error) {
	intermediates := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		if parsed, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(parsed)
		}
	}
	chains, err := c.Leaf.Verify(x509.VerifyOptions{Roots: r.pool, Intermediates: intermediates, CurrentTime: now})
	if err != nil {
		return nil, err
	}
	return chains[0][len(chains[0])-1], nil
}

func sameChain(a, b *tls.Certificate) bool {
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

func inUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// judge returns the status of a certificate, whether or not it is being served.
func (r *roots) judge(c *tls.Certificate, now time.Time) Status {
	st := Status{NotBefore: c.Leaf.NotBefore, NotAfter: c.Leaf.NotAfter}
	switch {
	case now.Before(st.NotBefore):
		st.Err = fmt.Errorf("the certificate is not valid before %s: wait, or set the clocks", inUTC(st.NotBefore))
	case now.After(st.NotAfter):
		st.Err = fmt.Errorf("the certificate expired at %s: renew it", inUTC(st.NotAfter))
	case r != nil:
		ca, err := r.verify(c, now)
		if err != nil {
			st.Err = fmt.Errorf("the CA file does not trust the certificate: %w: both must be from one issuer", err)
		} else {
			st.CANotAfter = ca.NotAfter
		}
	}
	st.Trusted, st.NotReady = st.Err == nil, st.Err
	if st.Trusted {
		st.Err = warning(c.Leaf, now)
	}
	return st
}

// warning returns a problem that does not make calls fail yet, or that affects only some clients. It returns nil if
// there is none.
func warning(leaf *x509.Certificate, now time.Time) error {
	if len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 {
		return errors.New("the certificate has no DNS name and no IP address among its subject alternative names, and API servers check nothing else")
	}
	if lifetime := leaf.NotAfter.Sub(leaf.NotBefore); leaf.NotAfter.Sub(now) < lifetime/10 {
		return fmt.Errorf("the certificate expires at %s, and has not been renewed", inUTC(leaf.NotAfter))
	}
	return nil
}

// prefers reports whether a new certificate should replace the served one: it should, unless the
// new one is worse. Of two expired certificates it prefers the one that expired later, which
// clients with a slow clock may still accept.
func (r *roots) prefers(c, served *tls.Certificate, now time.Time) bool {
	rank := func(c *tls.Certificate) int {
		switch {
		case now.After(c.Leaf.NotAfter):
			return 0
		case now.Before(c.Leaf.NotBefore):
			return 1
		case !r.judge(c, now).Trusted:
			return 2
		}
		return 3
	}
	a, b := rank(c), rank(served)
	if a == 0 && b == 0 {
		return c.Leaf.NotAfter.After(served.Leaf.NotAfter)
	}
	return a >= b
}
