// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A readOnly cluster has a Secret that can become read-only.
type readOnly struct {
	cluster
	on atomic.Bool
}

var errReadOnly = errors.New("no permission to update it")

func (r *readOnly) WriteSecret(ctx context.Context, s kube.Secret) error {
	if r.on.Load() {
		return errReadOnly
	}
	return r.cluster.WriteSecret(ctx, s)
}

// TestStartBesideAReadOnlySecret starts a replica when the CA is due for replacement, but the Secret cannot be written.
// The new replica must serve a certificate of the CA in the Secret.
func TestStartBesideAReadOnlySecret(t *testing.T) {
	inBubble(t, "read only", func(t *testing.T, f *fakeCluster) {
		c := &readOnly{cluster: f}
		o := slowOptions()
		o.CALifetime = 90 * day // due after 60 days
		before := startReplica(t, o, c)
		defer before.stop(t)
		settleSlowly()
		c.on.Store(true)
		elapse(62 * day)
		after := startReplica(t, o, c)
		defer after.stop(t)
		settleSlowly()
		if st := after.Status(); Ready(after)(t.Context()) != nil || !errors.Is(st.Err, errReadOnly) || !st.Trusted {
			t.Errorf("%v; status: %+v", Ready(after)(t.Context()), st)
		}
		watchCalls(t, f, webhooks, 0, 25*day, before, after)
		c.on.Store(false)
		watchCalls(t, f, webhooks, time.Minute, 20*day, before, after)
		if st := after.Status(); st.Err != nil || st.Rotations != 1 {
			t.Errorf("when it can be written again: %+v", st)
		}
	})
}

// An immutable Secret is reported at once, not when the next CA is due.
func TestImmutableSecret(t *testing.T) {
	inBubble(t, "immutable", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, slowOptions(), f)
		defer r.stop(t)
		settleSlowly()
		closed := errors.New("Secret hooks/ca is immutable")
		f.mu.Lock()
		f.secret.Version, f.secret.Closed = f.bump(), closed
		f.mu.Unlock()
		settleSlowly()
		if st := r.Status(); !errors.Is(st.Err, closed) || !st.Trusted || st.NotReady != nil {
			t.Errorf("status: %+v", st)
		}
		before := f.data()
		askToRotate(f)
		f.mu.Lock()
		f.secret.Closed = closed
		f.mu.Unlock()
		settleSlowly()
		if st := r.Status(); st.Err == nil || st.Err.Error() != closed.Error() || describe(f.data()) != describe(before) {
			t.Errorf("with something to write: %+v", st)
		}
		f.setSecret(nil)
		settleSlowly()
		if st := r.Status(); st.Err != nil || describe(f.data()) == describe(nil) {
			t.Errorf("deleted: %+v", st)
		}
	})
}

// ownedByOther is a cluster in which another installation can take over some or all targets.
type ownedByOther struct {
	cluster
	all  atomic.Bool
	some atomic.Pointer[Target]
}

func (c *ownedByOther) ReadTarget(ctx context.Context, t kube.Target) (kube.TargetState, error) {
	if some := c.some.Load(); c.all.Load() || some != nil && some.String() == t.String() {
		return kube.TargetState{}, fmt.Errorf("%s %w", t, kube.ErrOtherOwner)
	}
	return c.cluster.ReadTarget(ctx, t)
}

// A target of another installation delays neither rotations nor new replicas if there are other
// targets.
func TestTargetOfAnotherInstallation(t *testing.T) {
	inBubble(t, "one of two", func(t *testing.T, f *fakeCluster) {
		f.createTarget(others, nil)
		c := &ownedByOther{cluster: f}
		o := slowOptions()
		o.Targets = append(o.Targets, others)
		r := startReplica(t, o, c)
		defer r.stop(t)
		settleSlowly()
		c.some.Store(&others)
		askToRotate(f)
		watchCalls(t, f, webhooks, time.Minute, day, r)
		if st := r.Status(); st.Rotations != 1 || !errors.Is(st.Err, kube.ErrOtherOwner) || !st.Trusted {
			t.Errorf("status: %+v", st)
		}
		begun := startReplica(t, o, c)
		defer begun.stop(t)
		settleSlowly()
		if st := begun.Status(); st.NotReady != nil || !st.Trusted || !errors.Is(st.Err, kube.ErrOtherOwner) {
			t.Errorf("a new replica: %+v", st)
		}
		watchCalls(t, f, webhooks, time.Minute, 10*day, r, begun)
	})
	inBubble(t, "all", func(t *testing.T, f *fakeCluster) {
		c := &ownedByOther{cluster: f}
		c.all.Store(true)
		r := startReplica(t, slowOptions(), c)
		defer r.stop(t)
		elapse(10 * day)
		if st := r.Status(); !errors.Is(st.NotReady, kube.ErrOtherOwner) || st.Trusted {
			t.Errorf("status: %+v", st)
		}
	})
}

// TestFollowerIsOverdue is about a follower: a replica that may not write. Its certificate is due for renewal before
// the new signing CA in the Secret has settled. The follower must use the new CA as soon as the CA has settled, and not
// only when its next certificate is due.
func TestFollowerIsOverdue(t *testing.T) {
	seen := sampleState(t)
	known := seen.clone()
	known.generation++
	o, err := testOptions().completed()
	if err != nil {
		t.Fatal(err)
	}
	s := newSelfManaged(o, nil)
	s.log = quiet()
	now := time.Now()
	look := &turn{began: now, judged: now}
	for _, step := range []struct {
		why     string
		due     time.Duration
		settled bool
		want    *state
	}{
		{"not due, and not settled", time.Hour, false, known},
		{"due, and not settled", 0, false, known},
		{"due before, and not settled", time.Hour, false, known},
		{"due before, and settled", time.Hour, true, seen},
		{"not due again", time.Hour, true, known},
		{"due, and settled", 0, true, seen},
	} {
		s.renew, s.seen.since = now.Add(step.due), nil
		if step.settled {
			s.seen.since = map[caSighting]time.Time{{seen.signing.id(), ""}: now.Add(-time.Hour)}
		}
		if got := s.follow(look, seen, known); got != step.want {
			t.Errorf("%s: it goes by generation %d", step.why, got.generation)
		}
	}
}
