// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A lookout is what one replica remembers of its looks.
type lookout struct {
	version string // of the Secret that was decoded last
	state   *state
	err     error

	next    *x509.Certificate    // the CA that is waiting to sign
	since   map[string]time.Time // when it was first seen in a place, and at every look since
	trusted map[string]trust     // what trusts what is served, as far as it could be read; by target
	told    string               // the error that was logged last
}

// A trust is what a target was found to trust.
type trust struct {
	leaf    *x509.Certificate
	bundles [][]byte
}

// decode reads the Secret, if it is another than the last time.
func (l *lookout) decode(s secret) (*state, error) {
	if s.version == "" || s.version != l.version {
		l.state, l.err = decodeState(s.data)
		l.version = s.version
	}
	return l.state, l.err
}

// settled tells whether this replica has seen the next CA, at every look and for long enough,
// in the Secret and in every target that exists. Time is measured by each replica for itself:
// one that dies has another one begin again, and no clocks are compared. A target that cannot
// be read may lack it.
func (l *lookout) settled(seen *state, t *turn, settle time.Duration) bool {
	if seen == nil || seen.next == nil {
		l.next = nil
		return false
	}
	if l.next == nil || !l.next.Equal(seen.next.cert) {
		l.next, l.since = seen.next.cert, map[string]time.Time{}
	}
	all := l.longEnough("", true, t.now, settle)
	for _, o := range t.targets {
		if errors.Is(o.err, errNoTarget) {
			delete(l.since, o.target.String())
			continue
		}
		all = l.longEnough(o.target.String(), o.err == nil && o.hasCA(l.next), t.now, settle) && all
	}
	return all
}

func (l *lookout) longEnough(place string, there bool, now time.Time, settle time.Duration) bool {
	if !there {
		delete(l.since, place)
		return false
	}
	if _, known := l.since[place]; !known {
		l.since[place] = now
	}
	return now.Sub(l.since[place]) >= settle
}

// settlesAt is when the next CA will have settled if nothing happens, or the zero time.
func (l *lookout) settlesAt(settle time.Duration) time.Time {
	var last time.Time
	if l.next != nil {
		for _, t := range l.since {
			if t.After(last) {
				last = t
			}
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(settle)
}

func (o *observed) hasCA(c *x509.Certificate) bool {
	for _, e := range o.entries {
		if !slices.ContainsFunc(parseBundle(e.bundle), c.Equal) {
			return false
		}
	}
	return true
}

// trust tells whether every target trusts the certificate, or which one does not. What could
// not be read counts as it did the last time that it could; what does not exist calls nobody.
func (l *lookout) trust(targets []observed, served *tls.Certificate, now time.Time) error {
	if l.trusted == nil {
		l.trusted = map[string]trust{}
	}
	var errs []error
	for _, o := range targets {
		name := o.target.String()
		before, was := l.trusted[name]
		var err error
		switch {
		case errors.Is(o.err, errNoTarget):
			delete(l.trusted, name)
		case o.err != nil && !was:
			err = errors.New("it is not known whether it trusts what is served")
		case o.err != nil, was && before.leaf == served.Leaf && slices.EqualFunc(before.bundles, o.bundles(), bytes.Equal):
		default:
			delete(l.trusted, name)
			if err = o.verify(served.Leaf, now); err == nil {
				l.trusted[name] = trust{served.Leaf, o.bundles()}
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("caBundle of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (o *observed) bundles() [][]byte {
	var all [][]byte
	for _, e := range o.entries {
		all = append(all, e.bundle)
	}
	return all
}

// verify checks a certificate as the API server does.
func (o *observed) verify(leaf *x509.Certificate, now time.Time) error {
	host := names{leaf.DNSNames, leaf.IPAddresses}.host()
	for _, bundle := range o.bundles() {
		roots := x509.NewCertPool()
		for _, c := range parseBundle(bundle) {
			roots.AddCert(c)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now}); err != nil {
			return fmt.Errorf("does not trust what is served: %w", err)
		}
	}
	return nil
}

// finish sums up a turn for Status and the log.
func (s *SelfManaged) finish(t *turn, err error) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	served := s.served.Load()
	var trustErr error
	switch {
	case served == nil:
		trustErr = errors.New("there is no serving certificate yet")
	case s.takesOver():
		trustErr = fmt.Errorf("the caBundles have had the new CA for less than %s, beside that of somebody else", s.o.Settle)
	default:
		trustErr = s.look.trust(t.targets, served, t.now)
	}
	s.status.Trusted = trustErr == nil
	s.status.Phase = s.state.phase()
	if s.issuer != nil {
		s.status.CANotAfter = s.issuer.NotAfter
	}
	if errors.Is(err, errConflict) { // somebody else is at it: look again, without a word
		return time.Time{}, err
	}
	s.status.Err = err
	if err == nil {
		s.status.Err = trustErr
	}
	if !errors.Is(err, context.Canceled) { // it is told to stop
		s.tell()
	}
	return s.nextStep(t.now), err
}

// takesOver tells whether the very first CA comes to caBundles that have another already: then
// API servers may trust only that one for a while, and replicas with certificates from it are
// still there to be called. Where there was none, nobody is better off for waiting.
func (s *SelfManaged) takesOver() bool {
	return s.state != nil && s.state.signing == nil && len(s.state.retiring) > 0 && s.state.next != nil && s.state.next.cert.Equal(s.issuer)
}

// tell logs a trouble when it comes, changes and goes.
func (s *SelfManaged) tell() {
	text := ""
	if s.status.Err != nil {
		text = s.status.Err.Error()
	}
	switch {
	case text == s.look.told:
	case text != "" && s.state.phase() == Starting: // as is to be expected
		s.log.Info("the certificates are not ready yet", "because", text)
	case text != "":
		s.log.Error(s.status.Err, "the certificates need attention; what is served stays")
	default:
		s.log.Info("the certificates are well again")
	}
	s.look.told = text
}

func (s *SelfManaged) nextStep(now time.Time) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if s.state != nil {
		sooner(s.policy.wake(s.state, now))
	}
	sooner(s.look.settlesAt(s.policy.settle))
	if s.served.Load() != nil {
		sooner(s.renewAt())
	}
	return next
}
