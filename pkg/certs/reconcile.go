// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// A turn is one look at everything. The order matters: targets are read before the Secret, and
// written only if they have not changed since. So what is written into a caBundle is never
// older than what was there.
type turn struct {
	targets []observed
	stored  secret
	readAt  time.Time // before the Secret was read
	now     time.Time
}

// An observed target is what was read of one.
type observed struct {
	target Target
	targetState
	err error // errNoTarget among them
}

// turn looks once at everything and does what is due. It returns when something is due for time
// alone, and what went wrong.
func (s *SelfManaged) turn(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	t := &turn{targets: s.readTargets(ctx), readAt: wallClock()}
	var err error
	t.stored, err = s.cluster.readSecret(ctx)
	t.now = wallClock()
	if err != nil {
		s.serveBlind(t.now)
		return s.finish(t, err)
	}
	desired, err := s.agree(ctx, t)
	if err != nil {
		s.serveBlind(t.now)
		return s.finish(t, err)
	}
	return s.finish(t, errors.Join(s.serve(desired, t.now, t.readAt), s.inject(ctx, t, desired)))
}

func (s *SelfManaged) readTargets(ctx context.Context) []observed {
	all := make([]observed, len(s.o.Targets))
	for i, target := range s.o.Targets {
		st, err := s.cluster.readTarget(ctx, target)
		all[i] = observed{target, st, err}
	}
	return all
}

// agree returns the state that the Secret holds after this turn.
func (s *SelfManaged) agree(ctx context.Context, t *turn) (*state, error) {
	seen, readErr := s.look.decode(t.stored)
	if errors.Is(readErr, errForeignSecret) {
		return nil, readErr
	}
	known := s.known()
	if !s.mayWrite() {
		switch {
		case seen != nil:
			s.learn(seen)
			return seen, nil
		case known != nil:
			return known, nil
		}
		return nil, errors.New("the Secret has no CA yet, and this replica waits for the elected one to make it")
	}
	if readErr != nil && t.stored.version != "" {
		s.log.Info("the Secret is filled again", "secret", s.o.Namespace+"/"+s.o.Secret, "because", readErr.Error(), "fromMemory", known != nil)
	}
	settled := s.look.settled(seen, t, s.policy.settle)
	merged := s.policy.adopt(s.policy.merge(seen, known, t.now), t.states(), t.now)
	_, wanted := t.stored.data[rotateKey]
	if wanted && merged.next != nil {
		s.log.Info("a new CA is on its way already: the wish for one is taken as fulfilled")
	}
	desired, err := s.policy.rotate(merged, t.now, wanted, settled)
	if err != nil {
		return nil, err
	}
	if err := s.store(ctx, t.stored, desired); err != nil {
		return nil, err
	}
	s.learn(desired)
	return desired, nil
}

func (t *turn) states() []targetState {
	var all []targetState
	for _, o := range t.targets {
		if o.err == nil {
			all = append(all, o.targetState)
		}
	}
	return all
}

// store writes the state, unless that is what the Secret says. Keys of others stay.
func (s *SelfManaged) store(ctx context.Context, stored secret, desired *state) error {
	data, err := withState(stored.data, desired)
	if err != nil {
		return err
	}
	if maps.EqualFunc(data, stored.data, bytes.Equal) {
		return nil
	}
	desired.generation++
	if data, err = withState(stored.data, desired); err != nil {
		return err
	}
	return s.cluster.writeSecret(ctx, secret{version: stored.version, data: data})
}

func withState(data map[string][]byte, s *state) (map[string][]byte, error) {
	own, err := s.encode()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(data)
	if all == nil {
		all = map[string][]byte{}
	}
	delete(all, rotateKey) // done
	maps.Copy(all, own)
	return all, nil
}

// inject has every caBundle be that of the state, which is in the Secret. What it wrote counts
// as observed.
func (s *SelfManaged) inject(ctx context.Context, t *turn, desired *state) error {
	bundle := desired.bundle()
	var errs []error
	for i := range t.targets {
		o := &t.targets[i]
		if o.err == nil && o.holds(bundle) {
			continue
		}
		if o.err == nil && s.mayWrite() {
			if o.err = s.cluster.writeTarget(ctx, o.target, o.targetState, bundle); o.err == nil {
				s.log.Info("caBundle written", "target", o.target.String(), "certificates", len(desired.trusted()))
				for j := range o.entries {
					o.entries[j].bundle = bundle
				}
			}
		}
		if o.err != nil {
			errs = append(errs, o.err)
		}
	}
	return errors.Join(errs...)
}

func (o *observed) holds(bundle []byte) bool {
	for _, e := range o.entries {
		if !bytes.Equal(e.bundle, bundle) {
			return false
		}
	}
	return true
}

// serve has this replica serve a certificate that the state calls for.
func (s *SelfManaged) serve(st *state, now, readAt time.Time) error {
	s.mu.Lock()
	n, issuer := s.names, s.issuer
	s.mu.Unlock()
	current, signer := s.served.Load(), st.signer()
	if current != nil && issuer != nil && st.trusts(issuer) && n.equal(current.Leaf) &&
		(st.signing == nil || issuer.Equal(signer.cert)) && now.Before(s.renewAt()) {
		return nil
	}
	if !now.Before(signer.cert.NotAfter) {
		return fmt.Errorf("the CA ended at %s, and the next one has not settled", signer.cert.NotAfter.Format(time.RFC3339))
	}
	// See endOfTrust: the lifetime counts from the moment at which this CA was known to sign.
	leaf, err := signer.issue(n, s.policy.keyType, now, readAt.Add(s.policy.leafLifetime), s.policy.skew)
	if err != nil {
		return err
	}
	s.served.Store(leaf)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = signer.cert
	if current != nil {
		s.status.Renewals++
		if !issuer.Equal(signer.cert) {
			s.status.Rotations++
		}
	}
	s.log.Info("serving a new certificate", "notAfter", leaf.Leaf.NotAfter, "ca", signer.cert.Subject.CommonName)
	return nil
}

// serveBlind renews the certificate from memory when the Secret cannot be had and the
// certificate is about to end: one that may not be trusted beats one that cannot be.
func (s *SelfManaged) serveBlind(now time.Time) {
	known, current := s.known(), s.served.Load()
	if known == nil || current == nil || current.Leaf.NotAfter.Sub(now) > s.policy.leafLifetime/6 {
		return
	}
	if err := s.serve(known, now, now); err != nil {
		s.log.Error(err, "cannot renew the serving certificate from memory")
	}
}

// renewAt is when the certificate that is served is to be replaced for its age.
func (s *SelfManaged) renewAt() time.Time {
	leaf := s.served.Load().Leaf
	return dueAfter(leaf.NotBefore.Add(s.policy.skew), leaf.NotAfter)
}

func (s *SelfManaged) known() *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *SelfManaged) learn(st *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, after := s.state.phase(), st.phase(); s.state == nil || before != after {
		s.log.Info("CA", "phase", string(after), "trusted", len(st.trusted()))
	}
	s.state = st
}

func (s *SelfManaged) mayWrite() bool {
	if s.o.Elected == nil {
		return true
	}
	select {
	case <-s.o.Elected:
		return true
	default:
		return false
	}
}
