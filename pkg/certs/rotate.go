// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"slices"
	"time"
)

// rotate takes the steps that are due, and returns the state after them. wanted means that a user asks for a new CA. settled
// means that the next CA has been in every caBundle for long enough.
//
//	publish: a CA is created; clients trust it from now on, and it does not sign yet
//	sign:    the CA has settled, so it signs; the old CA loses its key and stays trusted
//	retire:  all certificates of the old CA have expired, so it is removed
func (p policy) rotate(s *state, now time.Time, wanted, settled bool) (*state, error) {
	wanted = wanted && s.next == nil // otherwise a new CA exists already
	r := s.clone()
	r.dropEnded(now)
	if r.signing != nil && r.signing.outlives < p.outlives() { // set before this replica issues a certificate of that CA
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

// maxRetiring limits how many old CAs may still be trusted when a CA is replaced before it is due. Otherwise repeated
// requests for a new CA, or replicas with different key types, could fill the Secret.
const maxRetiring = 8

// due reports whether a CA must be replaced: two thirds of its lifetime have passed, or its key has another type than
// Options.KeyType. The lifetime counts from the creation of the CA, which is skew after NotBefore.
func (p policy) due(a *authority, now time.Time) bool {
	return !now.Before(p.dueAt(a)) || !p.keyType.is(a.cert.PublicKey)
}

func (p policy) dueAt(a *authority) time.Time {
	return renewalTime(a.cert.NotBefore.Add(p.skew), a.cert.NotAfter)
}

// mustSignNow reports whether the next CA must sign before it has settled: the old CA has expired, so its certificates
// fail every call. If there is no old CA, the next one signs at the latest when it is due for replacement itself.
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

// dropEnded retires the CAs that are no longer needed, and removes records whose time is over.
func (s *state) dropEnded(now time.Time) {
	ended := func(x retiring) bool { return !now.Before(x.until) }
	all := s.retiring
	s.retiring = slices.DeleteFunc(slices.Clone(all), ended)
	for _, x := range all {
		if !ended(x) {
			continue
		}
		r := retired{id: fingerprint(x.cert), until: x.cert.NotAfter.Add(day)} // a margin, because clocks differ
		if x.target != "" {
			r.foreign, r.until = true, now.Add(time.Hour) // remembered for an hour, in case another source writes the CA again
		}
		s.retire(r)
	}
	if s.next != nil && !now.Before(s.next.cert.NotAfter) {
		s.next = nil
	}
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool { return !now.Before(r.until) })
}

// steps returns the times at which steps are due.
func (p policy) steps(s *state) []time.Time {
	var all []time.Time
	if s.signing != nil {
		all = append(all, p.dueAt(s.signing), s.signing.cert.NotAfter.Add(-p.skew))
	}
	for _, r := range s.retiring {
		all = append(all, r.until)
	}
	return all
}

// firstAfter returns the first of the times that is after now, or the zero time if none is.
func firstAfter(now time.Time, all []time.Time) time.Time {
	later := slices.DeleteFunc(all, func(t time.Time) bool { return !t.After(now) })
	if len(later) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(later, time.Time.Compare)
}
