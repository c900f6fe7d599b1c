// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// finish sets Status after a turn, and logs it.
func (s *SelfManaged) finish(t *turn, err error) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logClock(t)
	s.judge(t, s.served.Load())
	s.status.Phase = s.state.phase()
	if s.issuer != nil {
		s.status.CANotAfter = s.issuer.NotAfter
	}
	if onlyConflicts(err) { // another replica writes: retry without a log line
		return time.Time{}, kube.ErrConflict
	}
	s.status.Err = err
	if err == nil {
		s.status.Err = s.seen.untrusted
	}
	if !errors.Is(err, context.Canceled) { // otherwise Start was canceled
		s.logStatus()
	}
	return s.nextStep(t.now), err
}

// onlyConflicts reports whether every error is a conflict with another writer.
func onlyConflicts(err error) bool {
	return all(err, func(err error) bool { return errors.Is(err, kube.ErrConflict) })
}

// all calls the given function for each error that err joins. It reports whether every call returned true.
func all(err error, of func(error) bool) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(many.Unwrap(), func(one error) bool { return !all(one, of) })
	}
	return of(err)
}

// logStatus logs an error once when it appears and when it changes, and logs when there is no error any more.
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
		s.log.Error(s.status.Err, "the certificates need attention; the current certificate is still served")
	default:
		s.log.Info("the certificates no longer need attention")
	}
	s.seen.logged = text
}

func (s *SelfManaged) nextStep(now time.Time) time.Time {
	steps := []time.Time{s.seen.settlesAt(s.policy.settle)}
	if s.state != nil {
		steps = append(steps, s.policy.steps(s.state)...)
	}
	if s.served.Load() != nil {
		steps = append(steps, s.renew)
	}
	return firstAfter(now, steps)
}

// logDifference is the smallest difference between the clocks that is logged.
const logDifference = time.Minute

// clockDifference describes the difference of the clocks.
func clockDifference(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("this machine's clock is %s behind the API server's", -ahead)
	}
	return fmt.Sprintf("this machine's clock is %s ahead of the API server's", ahead)
}

// logClock logs when the clocks begin to differ, and when they agree again. A difference beyond ClockSkew is an error
// of the turn instead.
func (s *SelfManaged) logClock(t *turn) {
	s.status.ClockAhead = t.ahead
	differ := s.seen.differs.is
	switch {
	case differ && !s.seen.clocksDiffer && t.differ == nil:
		s.log.Info(clockDifference(t.ahead.Truncate(time.Second))+", which is still within ClockSkew", "clockSkew", s.o.ClockSkew.String())
	case !differ && s.seen.clocksDiffer:
		s.log.Info("this machine's clock and the API server's agree again")
	}
	s.seen.clocksDiffer = differ
}
