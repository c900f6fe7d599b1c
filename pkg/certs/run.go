// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Start maintains the CA, the certificate and the caBundles until ctx is done. It returns an error at once if the Secret
// contains data that is not an admitkit CA. After any other error, such as a missing permission, it tries again. Status and the
// log report these errors.
func (s *SelfManaged) Start(ctx context.Context) error {
	if s.start.Swap(true) {
		return errStartedTwice
	}
	if s.log.GetSink() == nil {
		s.log = contextLogger(ctx)
	}
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching.Go(func() {
		s.cluster.Watch(logr.NewContext(ctx, s.log), targetObjects(s.o.Targets), func() {
			select {
			case changed <- struct{}{}:
			default: // a turn is due anyway
			}
		})
	})
	return s.run(ctx, changed)
}

func (s *SelfManaged) run(ctx context.Context, changed <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			// Changes come in groups, and all replicas see them at the same time.
			if !pause(ctx, rand.N(min(s.o.Interval/20, 200*time.Millisecond)+1)) {
				return nil
			}
		case <-timer.C:
		}
		next, err := s.turn(ctx)
		if errors.Is(err, errForeignSecret) && s.served.Load() == nil {
			return err
		}
		if failures++; err == nil {
			failures = 0
		}
		timer.Reset(s.delay(next, failures))
	}
}

// delay returns how long to wait for the next turn: less after a failure, and never longer than until the next step is due.
func (s *SelfManaged) delay(next time.Time, failures int) time.Duration {
	d := s.o.Interval + rand.N(s.o.Interval/10+1)
	if failures > 0 {
		d = min(d, s.o.Interval/50<<min(failures, 10)+rand.N(s.o.Interval/50+1))
	}
	if !next.IsZero() {
		d = min(d, max(next.Sub(s.clock()), 0)+time.Millisecond)
	}
	return d
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
