// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A stalling cluster blocks one call for three hours: a read, or a write.
type stalling struct {
	cluster
	looks, writes atomic.Int32 // the call to block, counted from now; 0 means none
}

func (s *stalling) sleepAt(count *atomic.Int32) {
	if count.Load() > 0 && count.Add(-1) == 0 {
		elapse(3 * time.Hour)
	}
}

func (s *stalling) ReadSecret(ctx context.Context) (kube.Secret, error) {
	r, err := s.cluster.ReadSecret(ctx)
	s.sleepAt(&s.looks)
	return r, err
}

func (s *stalling) ReadTarget(ctx context.Context, t kube.Target) (kube.TargetState, error) {
	r, err := s.cluster.ReadTarget(ctx, t)
	s.sleepAt(&s.looks)
	return r, err
}

func (s *stalling) WriteTarget(ctx context.Context, t kube.Target, st kube.TargetState, bundle []byte) error {
	s.sleepAt(&s.writes)
	return s.cluster.WriteTarget(ctx, t, st, bundle)
}

func (s *stalling) WriteSecret(ctx context.Context, st kube.Secret) error {
	s.sleepAt(&s.writes)
	return s.cluster.WriteSecret(ctx, st)
}

// TestStaleReplica suspends a replica at the worst moment, and lets it continue after the CA was replaced twice. The
// replica must not revert any step. The certificates of the other replicas must stay trusted all the time.
func TestStaleReplica(t *testing.T) {
	rows := []struct {
		name string
		arm  func(*stalling)
	}{
		{"between two looks", func(s *stalling) { s.looks.Store(1) }},
		{"after both looks", func(s *stalling) { s.looks.Store(2) }},
		{"before it writes the Secret", func(s *stalling) { s.writes.Store(1) }},
		{"before it writes a caBundle", func(s *stalling) { s.writes.Store(2) }},
	}
	for _, row := range rows {
		inBubble(t, row.name, func(t *testing.T, f *fakeCluster) {
			stale := &stalling{cluster: f}
			a, b := startReplica(t, testOptions(), stale), startReplica(t, testOptions(), f)
			defer a.stop(t)
			defer b.stop(t)
			settle()
			row.arm(stale)
			askToRotate(f)
			woken := time.Now().Add(3*time.Hour + time.Minute)
			for minute := 0; time.Now().Before(woken.Add(2 * time.Hour)); minute++ {
				elapse(time.Minute)
				if minute == 90 {
					askToRotate(f)
				}
				if err := b.call(f.bundleAt(webhooks, time.Now())); err != nil {
					t.Fatalf("%s before it wakes: %v", time.Until(woken), err)
				}
			}
			if b.Status().Rotations != 2 || a.Status().Rotations == 0 {
				t.Errorf("the CA was not replaced twice: %+v, %+v", a.Status(), b.Status())
			}
		})
	}
}

func askToRotate(f *fakeCluster) {
	data := f.data()
	data[rotateKey] = nil
	f.setSecret(data)
}
