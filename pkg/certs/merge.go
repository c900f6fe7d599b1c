// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"
)

// merge returns the state that the Secret should have. It combines seen, the state in the Secret, with known, the state
// in the memory of this replica. seen is nil if the Secret has no readable state. known is nil for a replica that has
// just started.
//
// The newer state decides the use of each CA. A CA that only the older state has stays trusted as long as one of its
// certificates may be valid. So trust in certificates that are being served does not end if the Secret is emptied and
// filled by another replica, or restored from a backup.
//
// A replica may have started from such a backup. So the CA that signs according to the backup is trusted as if it
// signed now, even if it was about to be retired.
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
		if now.Add(p.skew).Before(r.until) { // otherwise a slow clock would restore a record that another replica has just removed
			merged.retire(r)
		}
	}
	if merged.signing == nil && other.signing != nil && !merged.trusts(other.signing.cert) {
		merged.signing = other.signing
	}
	p.extendTrust(merged, seen.signer(), now)
	for _, a := range []*authority{other.signing, other.next} {
		if a != nil {
			p.keep(merged, a.cert, "", now)
		}
	}
	for _, r := range other.retiring {
		p.keep(merged, r.cert, r.target, now)
		for i, m := range merged.retiring { // the later end of trust counts
			if m.target == r.target && m.cert.Equal(r.cert) && m.until.Before(r.until) {
				merged.retiring[i].until = r.until
			}
		}
	}
	merged.sort()
	return merged
}

// extendTrust extends the trust in a CA with which another replica may sign now.
func (p policy) extendTrust(s *state, a *authority, now time.Time) {
	if a == nil {
		return
	}
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool { return r.id == a.id() })
	p.keep(s, a.cert, "", now)
	for i, r := range s.retiring {
		if until := p.endOfTrust(a.cert, now); r.target == "" && r.cert.Equal(a.cert) && r.until.Before(until) {
			s.retiring[i].until = until
		}
	}
}

// These constants limit the foreign CAs that the Secret keeps: CAs in a caBundle that do not belong to a self-managed
// source. A caBundle may hold all CAs of an operating system, and a Secret at most one megabyte.
const (
	maxForeign      = 32
	maxForeignBytes = 128 << 10
)

// adopt returns a copy of s that also trusts the foreign CAs in the targets' caBundles, for example those of
// cert-manager. Their certificates may still be served. The second result lists the added CAs. If a target has more CAs
// than the limits allow, counting those of other sources, adopt adds none of them. It then sets the error of that
// target, so that the caBundle is not written.
func (p policy) adopt(s *state, targets []observation, now time.Time) (*state, []retiring) {
	adopted := s.clone()
	var all []retiring
	count, bytes := 0, 0
	for _, r := range s.retiring {
		if r.target != "" {
			count, bytes = count+1, bytes+len(r.cert.Raw)
		}
	}
	for i := range targets {
		t := &targets[i]
		found := p.foreign(adopted, t, now)
		for _, r := range found {
			count, bytes = count+1, bytes+len(r.cert.Raw)
		}
		otherSourceCAs := p.otherSourceCAs(t, now)
		number, size := count+len(otherSourceCAs), bytes
		for _, c := range otherSourceCAs {
			size += len(c.Raw)
		}
		if len(found)+len(otherSourceCAs) > 0 && (number > maxForeign || size > maxForeignBytes) {
			t.err = fmt.Errorf("%s: its caBundle has %d certificates from other sources, more than this source can keep: remove those that are no longer needed", t.target, len(found)+len(otherSourceCAs))
			continue
		}
		adopted.retiring, all = append(adopted.retiring, found...), append(all, found...)
	}
	adopted.sort()
	return adopted, all
}

// foreign returns the CAs in a target's caBundles that the state does not trust yet. It leaves out expired and retired
// CAs, and those of other self-managed sources.
func (p policy) foreign(s *state, t *observation, now time.Time) []retiring {
	var found []retiring
	for _, bundle := range t.bundles {
		for _, c := range bundle {
			known := p.isOtherSourceCA(c, now) || slices.ContainsFunc(s.trustedBy(t.target.String()), c.Equal) || s.hasRetired(fingerprint(c), true) ||
				slices.ContainsFunc(found, func(r retiring) bool { return r.cert.Equal(c) })
			if !known && now.Before(c.NotAfter) {
				found = append(found, retiring{c, p.endOfTrust(c, now), t.target.String()})
			}
		}
	}
	return found
}

// isOtherSourceCA reports, from the name of the CA, whether it belongs to another self-managed
// source. Only that source knows when the CA is no longer needed. The name is no proof, so a CA that
// lives longer than such a source needs does not count.
func (p policy) isOtherSourceCA(c *x509.Certificate, now time.Time) bool {
	return strings.HasPrefix(c.Subject.CommonName, authorityName) && !strings.HasPrefix(c.Subject.CommonName, p.name+" ") &&
		c.NotAfter.Sub(c.NotBefore) <= p.maxOtherSourceLifetime() && !c.NotBefore.After(now.Add(p.skew))
}

// maxOtherSourceLifetime is the longest lifetime of a CA of another source: twice our CALifetime, or
// twice its default if that is longer.
func (p policy) maxOtherSourceLifetime() time.Duration {
	return 2 * max(p.caLifetime, defaultCALifetime)
}

// otherSourceCAs returns the CAs in a target that other self-managed sources put there. They stay until
// their source removes them or they expire, so that two sources can share a target.
func (p policy) otherSourceCAs(o *observation, now time.Time) []*x509.Certificate {
	var all []*x509.Certificate
	for _, bundle := range o.bundles {
		for _, c := range bundle {
			if p.isOtherSourceCA(c, now) && now.Before(c.NotAfter) && !slices.ContainsFunc(all, c.Equal) {
				all = append(all, c)
			}
		}
	}
	return all
}

// keep adds the certificate of a CA to the retiring ones, so that the target still trusts it. It does nothing if the
// target trusts the CA already, or if the CA was retired or has expired.
func (p policy) keep(s *state, c *x509.Certificate, target string, now time.Time) {
	if slices.ContainsFunc(s.trustedBy(target), c.Equal) || s.hasRetired(fingerprint(c), target != "") || !now.Before(c.NotAfter) {
		return
	}
	s.retiring = append(s.retiring, retiring{c, p.endOfTrust(c, now), target})
}
