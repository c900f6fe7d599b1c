// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// merge returns what the Secret should hold: what was seen there, completed by what this
// replica knows. seen is nil when there was nothing that could be read, known is nil for a
// replica that has just started.
//
// The newer of the two decides what each CA is for. What only the other has stays trusted for
// as long as certificates that it signed may be valid: an emptied Secret that another replica
// has filled, or an old copy that somebody has put back, must not take the trust from what is
// being served.
func (p policy) merge(seen, known *state, now time.Time) *state {
	switch {
	case seen == nil && known == nil:
		return &state{}
	case seen == nil:
		return known
	case known == nil:
		return seen
	}
	base, other := seen, known
	if known.generation > seen.generation {
		base, other = known, seen
	}
	merged := base.clone()
	merged.generation = max(seen.generation, known.generation)
	for _, r := range other.retired {
		merged.retire(r)
	}
	if merged.signing == nil && other.signing != nil && !merged.trusts(other.signing.cert) {
		merged.signing = other.signing
	}
	for _, c := range other.trusted() {
		p.keep(merged, c, now)
	}
	for _, r := range other.retiring { // the longer trust of the two
		for i := range merged.retiring {
			if merged.retiring[i].cert.Equal(r.cert) && merged.retiring[i].until.Before(r.until) {
				merged.retiring[i].until = r.until
			}
		}
	}
	merged.sort()
	return merged
}

// maxForeign bounds how many certificates of others are taken over: somebody's caBundle may be
// that of an operating system.
const maxForeign = 64

// adopt has the state trust what is in a caBundle now and what nobody knows: CAs of whoever
// looked after it before, such as cert-manager, and whose certificates other replicas may
// still serve.
func (p policy) adopt(s *state, targets []targetState, now time.Time) *state {
	adopted := s.clone()
	for _, t := range targets {
		for _, e := range t.entries {
			for _, c := range parseBundle(e.bundle) {
				if len(adopted.retiring) < maxForeign {
					p.keep(adopted, c, now)
				}
			}
		}
	}
	adopted.sort()
	return adopted
}

// keep adds a certificate to those that are trusted for a while, unless it is there or is not
// to be trusted any more.
func (p policy) keep(s *state, c *x509.Certificate, now time.Time) {
	if s.trusts(c) || s.hasRetired(fingerprint(c)) || !now.Before(c.NotAfter) {
		return
	}
	s.retiring = append(s.retiring, retiring{c, p.endOfTrust(c, now)})
}

// endOfTrust is when nothing is valid that the CA signs until now. A replica signs with a CA
// for no longer than one lifetime from the moment at which it read that this CA signs; its
// clock may be ahead of this one, and that of the replica which ends the trust, too.
func (p policy) endOfTrust(c *x509.Certificate, now time.Time) time.Time {
	until := now.Add(p.leafLifetime + 2*p.skew)
	if until.After(c.NotAfter) {
		return c.NotAfter
	}
	return until
}

// retire has the state trust a CA no more. One that signs is never retired so: it is replaced.
func (s *state) retire(r retired) {
	s.retiring = slices.DeleteFunc(s.retiring, func(x retiring) bool { return fingerprint(x.cert) == r.id })
	for _, a := range []*authority{s.signing, s.next} {
		if a != nil && a.id() == r.id {
			return
		}
	}
	if !s.hasRetired(r.id) {
		s.retired = append(s.retired, r)
	}
}
