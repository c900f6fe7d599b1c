// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A replica is ready when calls to it succeed. Once it is, what all replicas have in common does
// not take it out of service: without any of them, calls fail the more.

// judge sets what Status says of trust and readiness.
func (s *SelfManaged) judge(t *turn, served *tls.Certificate) {
	if served == nil {
		s.status.Trusted, s.status.NotReady = false, errors.New("there is no serving certificate yet")
		s.look.trouble = s.status.NotReady
		return
	}
	trust := s.look.trust(t, served.Leaf)
	s.status.Trusted, s.look.trouble = trust == nil, trust
	if s.look.ready {
		s.status.NotReady = s.outOfStep(t, served.Leaf)
		return
	}
	s.status.NotReady = s.notReadyYet(t, trust)
	s.look.ready = s.status.NotReady == nil
}

// trust returns which caBundles do not trust a certificate. One that cannot be read counts as it
// did when it could.
func (l *lookout) trust(t *turn, leaf *x509.Certificate) error {
	before := l.trusted
	l.trusted = map[string]error{}
	var errs []error
	for i := range t.targets {
		o := &t.targets[i]
		if t.taken(o) {
			continue
		}
		err := o.verify(leaf, t.judged)
		if o.err != nil && !needsNoBundle(o.err) {
			then, known := before[o.target.String()]
			if !known && errors.Is(o.err, kube.ErrOtherOwner) {
				errs = append(errs, o.err)
				continue
			}
			if !known {
				errs = append(errs, fmt.Errorf("it is not known whether %s trusts what is served: %w", o.target, o.err))
				continue
			}
			err = then
		}
		l.trusted[o.target.String()] = err
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// taken tells whether a target is somebody else's while others are ours: calls to this replica come
// from those. A replica that has none but those is that of a program that was refused.
func (t *turn) taken(o *observation) bool {
	return errors.Is(o.err, kube.ErrOtherOwner) && slices.ContainsFunc(t.targets, func(o observation) bool { return o.err == nil })
}

// notReadyYet is why a replica that was never ready is not. Every caBundle must trust it, and
// for so long that every API server knows: unless there was none before the first CA.
func (s *SelfManaged) notReadyYet(t *turn, trust error) error {
	if trust != nil {
		return trust
	}
	guests := slices.ContainsFunc(t.targets, func(o observation) bool { return len(s.policy.guests(&o, t.now)) > 0 })
	if s.state == nil || s.issuer == nil || s.state.signing == nil && !s.state.hasForeign() && !guests {
		return nil
	}
	for i := range t.targets {
		o := &t.targets[i]
		if needsNoBundle(o.err) || t.taken(o) || o.err == nil && len(o.Entries) == 0 {
			continue
		}
		if o.err != nil {
			return fmt.Errorf("it is not known since when %s trusts what is served: %w", o.target, o.err)
		}
		first, seen := s.look.since[sighting{fingerprint(s.issuer), o.target.String()}]
		own := seen && t.began.Sub(first) >= s.o.Settle
		const rounded = time.Second // what is in managedFields is
		others := !o.written && !o.Written.IsZero() && t.now.Add(-t.ahead).Sub(o.Written) >= s.o.Settle+rounded
		if !own && !others {
			return fmt.Errorf("the caBundle of %s was changed less than %s ago, so that an API server may not know it yet", o.target, s.o.Settle)
		}
	}
	return nil
}

// outOfStep is why this replica should not be called while others may: it serves a certificate
// by a CA that a caBundle does not have, and the one that signs now is there.
func (s *SelfManaged) outOfStep(t *turn, leaf *x509.Certificate) error {
	if s.state == nil || s.issuer == nil {
		return nil
	}
	for i := range t.targets {
		o := &t.targets[i]
		for _, c := range s.state.trusted() {
			if o.err == nil && o.prefers(c, s.issuer) {
				return o.verify(leaf, t.judged)
			}
		}
	}
	return nil
}
