// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// finish sums up a turn for Status and the log.
func (s *SelfManaged) finish(t *turn, err error) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logClock(t)
	s.judge(t, s.served.Load())
	s.status.Phase = s.state.phase()
	if s.issuer != nil {
		s.status.CANotAfter = s.issuer.NotAfter
	}
	if onlyConflicts(err) { // somebody else is at it: look again, without a word
		return time.Time{}, kube.ErrConflict
	}
	s.status.Err = err
	if err == nil {
		s.status.Err = s.seen.untrusted
	}
	if !errors.Is(err, context.Canceled) { // it is told to stop
		s.logStatus()
	}
	return s.nextStep(t.now), err
}

// onlyConflicts tells whether nothing is wrong but that somebody was faster.
func onlyConflicts(err error) bool {
	return all(err, func(err error) bool { return errors.Is(err, kube.ErrConflict) })
}

// all tells whether all of the joined errors are of a sort.
func all(err error, of func(error) bool) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(many.Unwrap(), func(one error) bool { return !all(one, of) })
	}
	return of(err)
}

// logStatus logs an error when it appears, changes and ends.
func (s *SelfManaged) logStatus() {
	text := ""
	if s.status.Err != nil {
		text = s.status.Err.Error()
	}
	switch {
	case text == s.seen.logged:
	case text != "" && s.state.phase() == Starting && (s.status.Err == s.seen.untrusted || all(s.status.Err, needsNoBundle)): //nolint:errorlint // this very one
		s.log.Info("the certificates are not ready yet", "because", text)
	case text != "":
		s.log.Error(s.status.Err, "the certificates need attention; what is served stays")
	default:
		s.log.Info("the certificates are well again")
	}
	s.seen.logged = text
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
	sooner(s.seen.settlesAt(s.policy.settle))
	if s.served.Load() != nil {
		sooner(s.renew)
	}
	return next
}
