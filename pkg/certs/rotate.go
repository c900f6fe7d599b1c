// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"slices"
	"time"
)

// rotate takes the steps that are due, and returns the state after them. wanted says that
// somebody asks for a new CA; settled that this replica has seen the next CA in every caBundle
// for as long as it takes.
//
//	publish: a CA is made, trusted from now on, and not yet used
//	sign:    it has settled, so it signs; the old one loses its key and stays trusted
//	retire:  nothing that the old one signed is valid any more, so it is dropped
func (p policy) rotate(s *state, now time.Time, wanted, settled bool) (*state, error) {
	wanted = wanted && s.next == nil // else it is on its way
	r := s.clone()
	r.dropEnded(now)
	if r.signing != nil && r.signing.outlives < p.outlives() { // before this replica signs with it
		longer := *r.signing
		longer.outlives = p.outlives()
		r.signing = &longer
	}
	if r.next != nil && (settled || p.mustSignNow(r, now)) {
		p.sign(r, now)
	}
	if r.next == nil && (r.signing == nil || !now.Before(p.dueAt(r.signing)) || len(r.retiring) < maxRetiring && (wanted || p.due(r.signing, now))) {
		next, err := newAuthority(p.name, p.keyType, now, p.caLifetime, p.skew)
		if err != nil {
			return nil, err
		}
		r.next = next
	}
	r.sort()
	return r, nil
}

// maxRetiring bounds how many CAs are made before their time: a wish for a new CA that somebody
// puts back again and again, or replicas that want different types of keys, must not fill the
// Secret.
const maxRetiring = 8

// due tells whether a CA is to be replaced. Its life counts from when it was made, skew after
// its beginning.
func (p policy) due(a *authority, now time.Time) bool {
	return !now.Before(p.dueAt(a)) || !p.keyType.is(a.cert.PublicKey)
}

func (p policy) dueAt(a *authority) time.Time {
	return renewalTime(a.cert.NotBefore.Add(p.skew), a.cert.NotAfter)
}

// mustSignNow tells whether waiting for the next CA to settle costs more calls than going on
// without: what the old one signs is not valid any more. The very first CA signs all the same.
func (p policy) mustSignNow(s *state, now time.Time) bool {
	if s.signing == nil {
		return p.due(s.next, now)
	}
	return !now.Before(s.signing.cert.NotAfter.Add(-p.skew))
}

func (p policy) sign(s *state, now time.Time) {
	if s.signing != nil {
		longest := p
		longest.leafLifetime = max(p.outlives(), s.signing.outlives) - 2*p.skew
		s.retiring = append(s.retiring, retiring{cert: s.signing.cert, until: longest.endOfTrust(s.signing.cert, now)})
	}
	s.signing, s.next = s.next, nil
}

// dropEnded ends the trust in what nobody needs, and forgets what is over.
func (s *state) dropEnded(now time.Time) {
	ended := func(x retiring) bool { return !now.Before(x.until) }
	all := s.retiring
	s.retiring = slices.DeleteFunc(slices.Clone(all), ended)
	for _, x := range all {
		if !ended(x) {
			continue
		}
		r := retired{id: fingerprint(x.cert), until: x.cert.NotAfter.Add(day)} // clocks differ
		if x.target != "" {
			r.foreign, r.until = true, now.Add(time.Hour) // who brings it back needs it
		}
		s.retire(r)
	}
	if s.next != nil && !now.Before(s.next.cert.NotAfter) {
		s.next = nil
	}
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool { return !now.Before(r.until) })
}

// wake returns when the next step is due for time alone, or the zero time.
func (p policy) wake(s *state, now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if s.signing != nil {
		sooner(p.dueAt(s.signing))
		sooner(s.signing.cert.NotAfter.Add(-p.skew))
	}
	for _, r := range s.retiring {
		sooner(r.until)
	}
	return at
}
