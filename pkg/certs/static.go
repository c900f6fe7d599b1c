// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Static returns a source with a fixed certificate and its key. It is for tests, and for programs that restart
// to change the certificate. The bundle, in PEM, holds the CAs that clients trust; it may be empty. An expired
// certificate is served, but the source is not ready.
func Static(certificate tls.Certificate, bundle []byte) Source {
	s := &static{}
	s.served, s.roots, s.err = newStatic(certificate, bundle)
	return s
}

type static struct {
	served *tls.Certificate
	roots  *roots // nil without a bundle
	err    error  // what is wrong with the arguments
	start  atomic.Bool
}

func newStatic(c tls.Certificate, bundle []byte) (*tls.Certificate, *roots, error) {
	if len(c.Certificate) == 0 || c.PrivateKey == nil {
		return nil, nil, errors.New("there is no certificate with a key to serve")
	}
	if c.Leaf == nil {
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			return nil, nil, fmt.Errorf("the certificate to serve: %w", err)
		}
		c.Leaf = leaf
	}
	key, ok := c.PrivateKey.(crypto.Signer)
	if !ok || !samePublicKey(key.Public(), c.Leaf.PublicKey) {
		return nil, nil, errors.New("the key does not match the certificate to serve")
	}
	if len(bundle) == 0 {
		return &c, nil, nil
	}
	r, err := newRoots(bundle)
	if err != nil {
		return nil, nil, fmt.Errorf("the bundle: %w", err)
	}
	return &c, r, nil
}

func (s *static) NeedLeaderElection() bool { return false }

func (s *static) Start(ctx context.Context) error {
	if s.start.Swap(true) {
		return errStartedTwice
	}
	if s.err != nil {
		return s.err
	}
	<-ctx.Done()
	return nil
}

func (s *static) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.served, s.err
}

func (s *static) Bundle() []byte { return s.roots.pem() }

func (s *static) Status() Status {
	if s.err != nil {
		return Status{Err: s.err, NotReady: s.err}
	}
	return s.roots.judge(s.served, time.Now())
}
