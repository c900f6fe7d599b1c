// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// turn looks once at everything and does what is due. It returns when something is due for time
// alone, and what went wrong.
func (s *SelfManaged) turn(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	t := &turn{began: time.Now(), follows: !s.mayWrite()}
	t.targets, t.looked, t.readAt = s.readTargets(ctx), time.Now(), s.clock()
	var err error
	t.stored, err = s.cluster.ReadSecret(ctx)
	if !s.setTimes(t) {
		return t.now.Add(s.o.Interval / 20), kube.ErrConflict // look again soon
	}
	if err != nil {
		s.serveFromMemory(t)
		return s.finish(t, errors.Join(t.differ, err))
	}
	desired, err := s.agree(ctx, t)
	if err != nil {
		s.serveFromMemory(t)
		return s.finish(t, err)
	}
	return s.finish(t, errors.Join(t.differ, t.stored.Closed, s.serve(desired, t), s.inject(ctx, t, desired)))
}

func (s *SelfManaged) readTargets(ctx context.Context) []observation {
	all := make([]observation, len(s.o.Targets))
	for i, target := range s.o.Targets {
		st, err := s.cluster.ReadTarget(ctx, target.object())
		all[i] = newObservation(target, st, err)
	}
	return all
}

// agree returns the state that the Secret holds after this turn.
func (s *SelfManaged) agree(ctx context.Context, t *turn) (*state, error) {
	seen, readErr := s.seen.decode(t.stored)
	if errors.Is(readErr, errForeignSecret) {
		return nil, fmt.Errorf("%s: %w: name another one, or delete this one", s.secretName(), readErr)
	}
	known := s.known()
	s.seen.observe(seen, t, 3*s.o.Interval)
	if waits := t.waits(); waits != nil {
		if st := s.follow(t, seen, known); st != nil {
			return st, nil
		}
		if errors.Is(readErr, errCorruptSecret) {
			return nil, fmt.Errorf("%s: %w; %w", s.secretName(), readErr, waits)
		}
		return nil, fmt.Errorf("%s has no CA yet: %w", s.secretName(), waits)
	}
	merged := s.policy.merge(seen, known, t.now)
	if readErr != nil && (t.stored.Version != "" || known != nil) {
		s.log.Info("the Secret is filled again", "secret", s.o.Namespace+"/"+s.o.Secret, "because", readErr.Error(), "fromMemory", known != nil)
	}
	desired, err := s.desire(t, merged)
	if err != nil {
		return nil, err
	}
	if err := s.store(ctx, t.stored, desired); err != nil {
		return nil, errors.Join(err, s.begin(t, seen))
	}
	s.learn(desired)
	return desired, nil
}

func (s *SelfManaged) secretName() string { return "Secret " + s.o.Namespace + "/" + s.o.Secret }

// begin has a replica that serves nothing yet serve by what is in the Secret, though that cannot
// be written.
func (s *SelfManaged) begin(t *turn, seen *state) error {
	if s.served.Load() != nil || seen == nil || seen.signing == nil {
		return nil
	}
	s.learn(seen)
	return s.serve(seen, t)
}

// follow returns the state that a replica goes by which may not write now: it cannot bring back
// what it knows. If that is newer than what others have put into the Secret, it holds until a new
// certificate is due, and what signs there has settled: which is before they end the trust in what
// signed before.
func (s *SelfManaged) follow(t *turn, seen, known *state) *state {
	if seen == nil {
		return known
	}
	newer := known != nil && known.generation > seen.generation
	s.mu.Lock()
	s.seen.overdue = newer && (s.seen.overdue || !t.judged.Before(s.renew)) // once due, it does not wait for the next time
	s.mu.Unlock()
	if newer && (!s.seen.overdue || seen.signing == nil || !s.seen.settled(seen.signing, t, s.policy.settle)) {
		return known
	}
	s.seen.overdue = false
	s.learn(seen)
	return seen
}

// desire returns the state after all that is due.
func (s *SelfManaged) desire(t *turn, merged *state) (*state, error) {
	settled := s.seen.settled(merged.next, t, s.policy.settle)
	merged, foreign := s.policy.adopt(merged, t.targets, t.now)
	for _, r := range foreign {
		s.log.Info("a CA of somebody else in a caBundle stays there for a while", "target", r.target,
			"ca", r.cert.Subject.String(), "sha256", fingerprint(r.cert), "until", r.until)
	}
	_, wanted := t.stored.Data[rotateKey]
	if wanted && merged.next != nil {
		s.log.Info("a new CA is being published already, which fulfils the request to rotate")
	}
	desired, err := s.policy.rotate(merged, t.now, wanted, settled)
	if err == nil && wanted && desired.next == nil {
		s.log.Info("no new CA is made, as too many are still trusted: ask again later", "trusted", len(desired.trusted()))
	}
	return desired, err
}

// store writes the state, unless that is what the Secret says. Keys of others stay.
func (s *SelfManaged) store(ctx context.Context, stored kube.Secret, desired *state) error {
	data, err := withState(stored.Data, desired)
	if err != nil {
		return err
	}
	if maps.EqualFunc(data, stored.Data, bytes.Equal) {
		return nil
	}
	if stored.Closed != nil {
		return stored.Closed
	}
	desired.generation++
	if data, err = withState(stored.Data, desired); err != nil {
		return err
	}
	return s.cluster.WriteSecret(ctx, kube.Secret{Version: stored.Version, Data: data})
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
	var errs []error
	for i := range t.targets {
		o := &t.targets[i]
		for _, name := range o.Missing {
			errs = append(errs, fmt.Errorf("%s has no webhook %s, whose caBundle is to be kept", o.target, name))
		}
		want := desired.trustedBy(o.target.String())
		for _, c := range s.policy.otherSourceCAs(o, t.now) {
			if !slices.ContainsFunc(want, c.Equal) {
				want = append(want, c)
			}
		}
		if o.err == nil && !o.equals(want) && t.waits() == nil {
			o.writeErr = s.write(ctx, o, want)
		}
		errs = append(errs, o.err, o.writeErr)
	}
	return errors.Join(errs...)
}

func (s *SelfManaged) write(ctx context.Context, o *observation, want []*x509.Certificate) error {
	text := bundle(want)
	if err := s.cluster.WriteTarget(ctx, o.target.object(), o.TargetState, text); err != nil {
		return err
	}
	s.log.Info("caBundle written", "target", o.target.String(), "certificates", len(want))
	o.setBundle(text)
	return nil
}

// serve has this replica serve a certificate that the state calls for.
func (s *SelfManaged) serve(st *state, t *turn) error {
	s.mu.Lock()
	n, issuer, renew := s.names, s.issuer, s.renew
	s.mu.Unlock()
	current, signer := s.served.Load(), st.signer()
	if current != nil && s.mayKeep(st, t, current.Leaf, issuer, n, renew) {
		return nil
	}
	if !t.judged.Before(signer.cert.NotAfter) {
		return fmt.Errorf("the CA ended at %s, and the next one has not settled", signer.cert.NotAfter.Format(time.RFC3339))
	}
	from, until := t.validity(s.policy.leafLifetime)
	leaf, err := signer.issue(n, s.policy.keyType, from, until, s.policy.skew)
	if err != nil {
		return err
	}
	s.served.Store(leaf)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = signer.cert
	s.renew = renewalTime(t.judged, t.judged.Add(min(s.policy.leafLifetime, leaf.Leaf.NotAfter.Sub(t.judged))))
	if current != nil {
		s.status.Renewals++
		if !issuer.Equal(signer.cert) {
			s.status.Rotations++
		}
	}
	s.log.Info("serving a new certificate", "notAfter", leaf.Leaf.NotAfter, "ca", signer.cert.Subject.CommonName)
	return nil
}

// mayKeep tells whether what is served goes on being served. A certificate by another CA than
// the one that signs now is better than a new one until this replica, too, has seen that one
// settle in its own targets, which may be more than those of the replica that had it sign: as
// long as it lasts, and no target would rather have the new one.
func (s *SelfManaged) mayKeep(st *state, t *turn, leaf, issuer *x509.Certificate, n names, renew time.Time) bool {
	signer := st.signer()
	if issuer.Equal(signer.cert) {
		return n.equal(leaf) && t.judged.Before(renew) && !t.judged.Before(leaf.NotBefore)
	}
	mature := st.signing != nil && s.seen.settled(signer, t, s.policy.settle) && !t.judged.Before(signer.cert.NotBefore)
	lasts := leaf.NotAfter.Sub(t.judged) > min(s.policy.leafLifetime, leaf.NotAfter.Sub(leaf.NotBefore))/4
	return !mature && lasts && !slices.ContainsFunc(t.targets, func(o observation) bool {
		return o.err == nil && o.prefers(signer.cert, issuer)
	})
}

// serveFromMemory renews the certificate from memory when the Secret cannot be had and the
// certificate is about to end: one that may not be trusted beats one that cannot be.
func (s *SelfManaged) serveFromMemory(t *turn) {
	known, current := s.known(), s.served.Load()
	if known == nil || current == nil || current.Leaf.NotAfter.Sub(t.judged) > s.policy.leafLifetime/6 {
		return
	}
	if err := s.serve(known, &turn{readAt: t.now, now: t.now, differ: t.differ, judged: t.judged}); err != nil {
		s.log.Error(err, "cannot renew the serving certificate from memory")
	}
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
