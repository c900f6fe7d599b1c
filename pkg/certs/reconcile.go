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

// turn reads the targets and the Secret once, and takes the steps that are due. It returns the time of
// the next scheduled step, and the errors.
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

// agree returns the state that the Secret holds after this turn. It writes the Secret if a step is due and this replica
// may write.
func (s *SelfManaged) agree(ctx context.Context, t *turn) (*state, error) {
	seen, readErr := s.seen.decode(t.stored)
	if errors.Is(readErr, errForeignSecret) {
		return nil, fmt.Errorf("%s: %w: choose another name, or delete this Secret", s.secretName(), readErr)
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
		s.log.Info("the CA is written to the Secret again", "secret", s.o.Namespace+"/"+s.o.Secret, "because", readErr.Error(), "fromMemory", known != nil)
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

// begin lets a replica that serves nothing yet use the state in the Secret, although the Secret cannot be
// written.
func (s *SelfManaged) begin(t *turn, seen *state) error {
	if s.served.Load() != nil || seen == nil || seen.signing == nil {
		return nil
	}
	s.learn(seen)
	return s.serve(seen, t)
}

// follow returns the state for a replica that may not write now. If its own state is newer than the one in the
// Secret, the replica keeps its own. It takes the one in the Secret once a new certificate is due and the
// signing CA in the Secret has settled. At that time the caBundles still have the previous CA, too.
func (s *SelfManaged) follow(t *turn, seen, known *state) *state {
	if seen == nil {
		return known
	}
	newer := known != nil && known.generation > seen.generation
	s.mu.Lock()
	s.seen.overdue = newer && (s.seen.overdue || !t.judged.Before(s.renew)) // once due, it stays due
	s.mu.Unlock()
	if newer && (!s.seen.overdue || seen.signing == nil || !s.seen.settled(seen.signing, t, s.policy.settle)) {
		return known
	}
	s.seen.overdue = false
	s.learn(seen)
	return seen
}

// desire returns the state after all steps that are due. merged is the state before them.
func (s *SelfManaged) desire(t *turn, merged *state) (*state, error) {
	settled := s.seen.settled(merged.next, t, s.policy.settle)
	merged, foreign := s.policy.adopt(merged, t.targets, t.now)
	for _, r := range foreign {
		s.log.Info("a foreign CA in a caBundle stays trusted for a while", "target", r.target,
			"ca", r.cert.Subject.String(), "sha256", fingerprint(r.cert), "until", r.until)
	}
	_, wanted := t.stored.Data[rotateKey]
	if wanted && merged.next != nil {
		s.log.Info("the request to rotate needs no new CA, since one is being published already")
	}
	desired, err := s.policy.rotate(merged, t.now, wanted, settled)
	if err == nil && wanted && desired.next == nil {
		s.log.Info("cannot create a new CA yet, because too many old CAs are still trusted: request the rotation again later", "trusted", len(desired.trusted()))
	}
	return desired, err
}

// store writes the state to the Secret unless the Secret has it already. It keeps data that other clients have
// added to the Secret.
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
	delete(all, rotateKey) // the request was handled
	maps.Copy(all, own)
	return all, nil
}

// inject writes the CAs of the state to every caBundle. The Secret must have that state already. inject
// updates the observations with what it wrote.
func (s *SelfManaged) inject(ctx context.Context, t *turn, desired *state) error {
	var errs []error
	for i := range t.targets {
		o := &t.targets[i]
		for _, name := range o.Missing {
			errs = append(errs, fmt.Errorf("%s has no webhook %s, although Target.Webhooks names it", o.target, name))
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

// serve issues a new serving certificate as the state requires, unless this replica may keep the
// current one.
func (s *SelfManaged) serve(st *state, t *turn) error {
	s.mu.Lock()
	n, issuer, renew := s.names, s.issuer, s.renew
	s.mu.Unlock()
	current, signer := s.served.Load(), st.signer()
	if current != nil && s.mayKeep(st, t, current.Leaf, issuer, n, renew) {
		return nil
	}
	if !t.judged.Before(signer.cert.NotAfter) {
		return fmt.Errorf("the CA expired at %s, and some API servers may not trust the next one yet", signer.cert.NotAfter.Format(time.RFC3339))
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

// mayKeep reports whether the replica keeps its current certificate. If another CA signs now, the
// replica keeps the certificate until it has seen the new CA settle in its own targets. These may
// be more than the targets of the replica that started to sign. It does not keep a certificate
// that is about to expire, or whose CA is missing in a target that has the new CA.
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

// serveFromMemory renews a certificate that is about to expire, in a turn that cannot use the Secret. It signs with the
// CA in memory. The new certificate may not be trusted, but an expired one never is.
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

// The API server verifies certificates by its own clock. Certificates tolerate a difference of up to
// ClockSkew. With a larger difference a replica cannot know which clock is wrong. It then writes
// nothing, since a step at the wrong time, such as the end of the trust in a CA, affects all
// replicas. It serves a certificate that is valid by both clocks.

// setTimes sets the times of a turn after everything was read. It reports whether the turn may
// continue. The turn must end if this API server's clock disagrees with the clock of earlier
// responses: one of the two is wrong.
func (s *SelfManaged) setTimes(t *turn) bool {
	t.now, t.ahead = s.clock(), s.cluster.Ahead()
	t.judged, t.differ = t.now, nil
	s.seen.differs.update(t.ahead.Abs() > logDifference)
	far := s.policy.exceedsSkew(t.ahead)
	if agrees := s.seen.far.update(far); !agrees || !far {
		return agrees
	}
	t.judged = t.now.Add(-t.ahead)
	if (t.ahead-s.seen.ahead).Abs() > logDifference/2 || !s.policy.exceedsSkew(s.seen.ahead) { // otherwise each change by a second would be logged
		s.seen.ahead = t.ahead.Truncate(time.Second)
	}
	t.differ = fmt.Errorf("%s, and ClockSkew is %s: correct the clock; until then this replica changes neither the Secret nor a caBundle",
		clockDifference(s.seen.ahead), s.policy.skew)
	return true
}
