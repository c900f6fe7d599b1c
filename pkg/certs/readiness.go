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

// A replica becomes ready when calls to it succeed. From then on a problem that all replicas share
// does not make it unready: with no ready replica more calls would fail.

// judge sets Trusted and NotReady of the status.
func (s *SelfManaged) judge(t *turn, served *tls.Certificate) {
	if served == nil {
		s.status.Trusted, s.status.NotReady = false, errors.New("there is no serving certificate yet")
		s.seen.untrusted = s.status.NotReady
		return
	}
	trust := s.seen.trust(t, served.Leaf)
	s.status.Trusted, s.seen.untrusted = trust == nil, trust
	if s.seen.ready {
		s.status.NotReady = s.servesOldCA(t, served.Leaf)
		return
	}
	s.status.NotReady = s.notReadyReason(t, trust)
	s.seen.ready = s.status.NotReady == nil
}

// trust returns an error that names the caBundles that do not trust a certificate. For a caBundle that
// cannot be read it repeats the last result.
func (l *history) trust(t *turn, leaf *x509.Certificate) error {
	before := l.trusted
	l.trusted = map[string]error{}
	var errs []error
	for i := range t.targets {
		o := &t.targets[i]
		if t.ownedByOther(o) {
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
				errs = append(errs, fmt.Errorf("it is unknown whether %s trusts the serving certificate: %w", o.target, o.err))
				continue
			}
			err = then
		}
		l.trusted[o.target.String()] = err
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ownedByOther reports whether the target belongs to another installation, while at least one other target could be
// read. Such a target does not count. If there is no other target, it counts, and the replica does not become ready:
// see trust.
func (t *turn) ownedByOther(o *observation) bool {
	return errors.Is(o.err, kube.ErrOtherOwner) && slices.ContainsFunc(t.targets, func(o observation) bool { return o.err == nil })
}

// notReadyReason returns why a replica does not become ready, or nil. Every caBundle must have had the
// CA of the serving certificate for Options.Settle, so that every API server has read it. The very
// first CA needs no wait.
func (s *SelfManaged) notReadyReason(t *turn, trust error) error {
	if trust != nil {
		return trust
	}
	otherSourceCAs := slices.ContainsFunc(t.targets, func(o observation) bool { return len(s.policy.otherSourceCAs(&o, t.now)) > 0 })
	if s.state == nil || s.issuer == nil || s.state.signing == nil && !s.state.hasForeign() && !otherSourceCAs {
		return nil
	}
	for i := range t.targets {
		o := &t.targets[i]
		if needsNoBundle(o.err) || t.ownedByOther(o) || o.err == nil && len(o.Entries) == 0 {
			continue
		}
		if o.err != nil {
			return fmt.Errorf("%s cannot be read, so it is unknown whether the API server trusts the certificate: %w", o.target, o.err)
		}
		first, seen := s.seen.since[caSighting{fingerprint(s.issuer), o.target.String()}]
		own := seen && t.began.Sub(first) >= s.o.Settle
		const rounded = time.Second // the times in managedFields have whole seconds
		others := !o.written && !o.Written.IsZero() && t.now.Add(-t.ahead).Sub(o.Written) >= s.o.Settle+rounded
		if !own && !others {
			return fmt.Errorf("the caBundle of %s was changed less than %s ago, so an API server may still have the old one", o.target, s.o.Settle)
		}
	}
	return nil
}

// servesOldCA returns an error if a caBundle lacks the CA of the served certificate, but has another CA
// of the state: then other replicas should be called.
func (s *SelfManaged) servesOldCA(t *turn, leaf *x509.Certificate) error {
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
