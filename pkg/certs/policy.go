// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"time"
)

// A policy is how CAs are made and replaced.
type policy struct {
	name         string // begins the names of CAs
	keyType      KeyType
	caLifetime   time.Duration
	leafLifetime time.Duration
	settle       time.Duration // how long a CA is trusted everywhere before it signs
	skew         time.Duration // by how much clocks may differ
}

const day = 24 * time.Hour

const defaultCALifetime = 365 * day

// dueAfter is the part of its life after which a certificate is replaced: two thirds.
func dueAfter(notBefore, notAfter time.Time) time.Time {
	return notBefore.Add(notAfter.Sub(notBefore) / 3 * 2)
}

// endOfTrust is when nothing is valid that the CA signs until now. A replica signs with a CA
// for no longer than one lifetime from the moment at which it read that this CA signs; its
// clock may be ahead of this one, and that of the replica which ends the trust, too.
func (p policy) endOfTrust(c *x509.Certificate, now time.Time) time.Time {
	until := now.Add(p.outlives())
	if until.After(c.NotAfter) {
		return c.NotAfter
	}
	return until
}

// outlives is for how long after a CA stops signing the certificates of this replica may be valid.
func (p policy) outlives() time.Duration { return p.leafLifetime + 2*p.skew }

// tooFar tells whether clocks differ by more than there is room for.
func (p policy) tooFar(ahead time.Duration) bool { return ahead.Abs() > max(p.skew, time.Second) }

// expired is why a certificate is of no use any more.
func expired(leaf *x509.Certificate, now time.Time) error {
	if now.Before(leaf.NotAfter) {
		return nil
	}
	return fmt.Errorf("the serving certificate ended at %s", leaf.NotAfter.Format(time.RFC3339))
}
