// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"
)

// merge returns what the Secret should hold: what was seen there, completed by what this
// replica knows. seen is nil when there was nothing that could be read, known is nil for a
// replica that has just started.
//
// The newer of the two decides what each CA is for. What only the other has stays trusted for
// as long as certificates that it signed may be valid: an emptied Secret that another replica
// has filled, or an old copy that somebody has put back, must not take the trust from what is
// being served. That copy may be where a replica began that this one has not met: so what signs
// there is trusted as if it did, though it was to be retired soon, or is.
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
		if now.Add(p.skew).Before(r.until) { // else a slow clock brings back what another has just forgotten
			merged.retire(r)
		}
	}
	if merged.signing == nil && other.signing != nil && !merged.trusts(other.signing.cert) {
		merged.signing = other.signing
	}
	p.revive(merged, seen.signer(), now)
	for _, a := range []*authority{other.signing, other.next} {
		if a != nil {
			p.keep(merged, a.cert, "", now)
		}
	}
	for _, r := range other.retiring {
		p.keep(merged, r.cert, r.target, now)
		for i, m := range merged.retiring { // the longer trust of the two
			if m.target == r.target && m.cert.Equal(r.cert) && m.until.Before(r.until) {
				merged.retiring[i].until = r.until
			}
		}
	}
	merged.sort()
	return merged
}

// revive has a CA be trusted for as long as what somebody may sign with it now.
func (p policy) revive(s *state, a *authority, now time.Time) {
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

// What is taken over of others, in all: somebody's caBundle may be that of an operating system,
// and the Secret has room for a megabyte.
const (
	maxForeign      = 32
	maxForeignBytes = 128 << 10
)

// adopt has each target go on trusting what is in its caBundle now and what nobody knows: CAs
// of whoever looked after it before, such as cert-manager, and whose certificates are still
// served. If there is more than fits, with its guests, the target is left as it is, with an error.
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
		guests := p.guests(t, now)
		number, size := count+len(guests), bytes
		for _, c := range guests {
			size += len(c.Raw)
		}
		if len(found)+len(guests) > 0 && (number > maxForeign || size > maxForeignBytes) {
			t.err = fmt.Errorf("%s: its caBundle has %d certificates of others, more than can be kept beside ours: remove those that nobody needs", t.target, len(found)+len(guests))
			continue
		}
		adopted.retiring, all = append(adopted.retiring, found...), append(all, found...)
	}
	adopted.sort()
	return adopted, all
}

// foreign returns what a target trusts and the state does not.
func (p policy) foreign(s *state, t *observation, now time.Time) []retiring {
	var found []retiring
	for _, bundle := range t.bundles {
		for _, c := range bundle {
			known := p.isGuest(c, now) || slices.ContainsFunc(s.trustedBy(t.target.String()), c.Equal) || s.hasRetired(fingerprint(c), true) ||
				slices.ContainsFunc(found, func(r retiring) bool { return r.cert.Equal(c) })
			if !known && now.Before(c.NotAfter) {
				found = append(found, retiring{c, p.endOfTrust(c, now), t.target.String()})
			}
		}
	}
	return found
}

// isGuest tells whether a CA is that of another source like this one, by the name that each
// gives its CAs. There is no telling when nobody needs it any more but for that source. A name is
// no proof: what would be trusted for longer than any such source needs is a stranger's.
func (p policy) isGuest(c *x509.Certificate, now time.Time) bool {
	return strings.HasPrefix(c.Subject.CommonName, authorityName) && !strings.HasPrefix(c.Subject.CommonName, p.name+" ") &&
		c.NotAfter.Sub(c.NotBefore) <= p.longestGuest() && !c.NotBefore.After(now.Add(p.skew))
}

// longestGuest is for how long a CA of another source may be valid: twice as long as one of ours,
// or as one of a source without options.
func (p policy) longestGuest() time.Duration { return 2 * max(p.caLifetime, defaultCALifetime) }

// guests returns the CAs in a target that other sources put there. They stay until that source
// takes them out, or they are over: two that look after one target leave each other alone.
func (p policy) guests(o *observation, now time.Time) []*x509.Certificate {
	var all []*x509.Certificate
	for _, bundle := range o.bundles {
		for _, c := range bundle {
			if p.isGuest(c, now) && now.Before(c.NotAfter) && !slices.ContainsFunc(all, c.Equal) {
				all = append(all, c)
			}
		}
	}
	return all
}

// keep adds a certificate to those that are trusted for a while, unless it is there or is not
// to be trusted any more.
func (p policy) keep(s *state, c *x509.Certificate, target string, now time.Time) {
	if slices.ContainsFunc(s.trustedBy(target), c.Equal) || s.hasRetired(fingerprint(c), target != "") || !now.Before(c.NotAfter) {
		return
	}
	s.retiring = append(s.retiring, retiring{c, p.endOfTrust(c, now), target})
}
