// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"time"
)

// A policy has the settings by which CAs are created and replaced.
type policy struct {
	name         string // prefix of the names of CAs
	keyType      KeyType
	caLifetime   time.Duration
	leafLifetime time.Duration
	settle       time.Duration // how long a CA is trusted everywhere before it signs
	skew         time.Duration // by how much clocks may differ
}

const day = 24 * time.Hour

const defaultCALifetime = 365 * day

// renewalTime returns when a certificate must be replaced: after two thirds of its lifetime.
func renewalTime(notBefore, notAfter time.Time) time.Time {
	return notBefore.Add(notAfter.Sub(notBefore) / 3 * 2)
}

// endOfTrust returns the time after which every certificate that the CA has signed until now has expired. Before a
// replica issues a certificate, it reads in the Secret which CA signs. The certificate expires at most one LeafLifetime
// after this read. The clock of that replica may be ahead of this one, and so may the clock of the replica that ends
// the trust.
func (p policy) endOfTrust(c *x509.Certificate, now time.Time) time.Time {
	until := now.Add(p.outlives())
	if until.After(c.NotAfter) {
		return c.NotAfter
	}
	return until
}

// outlives is how long certificates of this replica may be valid after their CA stops signing.
func (p policy) outlives() time.Duration { return p.leafLifetime + 2*p.skew }

// exceedsSkew reports whether clocks differ by more than ClockSkew.
func (p policy) exceedsSkew(ahead time.Duration) bool { return ahead.Abs() > max(p.skew, time.Second) }

// expired returns an error if the certificate has expired.
func expired(leaf *x509.Certificate, now time.Time) error {
	if now.Before(leaf.NotAfter) {
		return nil
	}
	return fmt.Errorf("the serving certificate expired at %s", leaf.NotAfter.Format(time.RFC3339))
}
