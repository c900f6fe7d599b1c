// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

var others = Target{Kind: ValidatingWebhookConfiguration, Name: "more-hooks"}

// unwritable is a cluster in which a target cannot be written.
type unwritable struct {
	cluster
	target Target
}

func (u *unwritable) WriteTarget(ctx context.Context, t kube.Target, s kube.TargetState, bundle []byte) error {
	if t.String() == u.target.String() {
		return fmt.Errorf("%s: no permission", t)
	}
	return u.cluster.WriteTarget(ctx, t, s, bundle)
}

// watchCalls lets simulated time pass for length, and calls every replica about once a minute, or at least a thousand
// times in all. The calls come from an API server that learns of a caBundle after lag. A failed call ends the test.
func watchCalls(t *testing.T, f *fakeCluster, target Target, lag, length time.Duration, replicas ...*replica) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < length; {
		elapse(max(time.Minute, length/1000))
		for i, r := range replicas {
			if err := r.call(f.bundleAt(target, time.Now().Add(-lag))); err != nil {
				t.Fatalf("after %s replica %d fails a call: %v; %+v", time.Since(begin), i, err, r.Status())
			}
		}
	}
}

func TestTrust(t *testing.T) {
	inBubble(t, "a replica with more targets than the others has its own time", func(t *testing.T, f *fakeCluster) {
		f.createTarget(others, nil)
		o := testOptions()
		o.Targets = append(o.Targets, others)
		before := startReplica(t, o, f)
		settle()
		before.stop(t)
		few := startReplica(t, testOptions(), f)
		defer few.stop(t)
		many := startReplica(t, o, &unwritable{f, others})
		defer many.stop(t)
		settle()
		askToRotate(f)
		watchCalls(t, f, others, 0, 2*time.Hour, many)
		if few.Status().Rotations != 1 {
			t.Errorf("the other replica: %+v", few.Status())
		}
	})
	inBubble(t, "an old copy of the Secret makes no certificate untrusted", func(t *testing.T, f *fakeCluster) {
		leader := startReplica(t, slowOptions(), f)
		o := slowOptions()
		o.Elected = make(chan struct{})
		follower := startReplica(t, o, f)
		defer follower.stop(t)
		settleSlowly()
		copied := f.data()
		askToRotate(f)
		settleSlowly()
		elapse(8 * day) // the first CA is no longer trusted
		leader.stop(t)
		f.setSecret(copied)
		watchCalls(t, f, webhooks, time.Minute, 2*time.Hour, follower)
		leader = startReplica(t, slowOptions(), f)
		defer leader.stop(t)
		watchCalls(t, f, webhooks, 30*time.Second, 2*time.Hour, follower)
		watchCalls(t, f, webhooks, time.Minute, 20*day, follower, leader)
	})
	inBubble(t, "a caBundle that was wrong in between settles anew", func(t *testing.T, f *fakeCluster) {
		o := testOptions()
		o.Settle = time.Hour
		a, b := startReplica(t, o, f), startReplica(t, o, f)
		defer a.stop(t)
		defer b.stop(t)
		elapse(2 * time.Hour)
		old := f.bundleAt(webhooks, time.Now())
		askToRotate(f)
		elapse(50 * time.Minute)
		f.createTarget(webhooks, old)
		watchCalls(t, f, webhooks, 50*time.Minute, 4*time.Hour, a, b)
		if a.Status().Rotations != 1 {
			t.Errorf("the CA was not replaced: %+v", a.Status())
		}
	})
	inBubble(t, "the first CA beside that of another is ready when it has settled", func(t *testing.T, f *fakeCluster) {
		old := startReplica(t, testOptions(), f)
		settle()
		old.stop(t)
		f.setSecret(nil)
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		begin := time.Now()
		for Ready(r)(t.Context()) != nil && time.Since(begin) < time.Hour {
			elapse(time.Second)
		}
		if waited := time.Since(begin); waited < time.Minute || waited > 25*time.Minute { // Settle and two checks
			t.Errorf("ready after %s", waited)
		}
		watchCalls(t, f, webhooks, time.Minute, time.Hour, r)
	})
	inBubble(t, "a new replica is ready at once where all is settled", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		settle()
		second := startReplica(t, testOptions(), f)
		defer second.stop(t)
		synctest.Wait()
		if err := Ready(second)(t.Context()); err != nil {
			t.Error(err)
		}
	})
	inBubble(t, "two types of keys do not fill the Secret", func(t *testing.T, f *fakeCluster) {
		o := testOptions()
		o.Settle, o.Interval = time.Minute, 10*time.Second
		a := startReplica(t, o, f)
		defer a.stop(t)
		o.KeyType = Ed25519
		b := startReplica(t, o, f)
		defer b.stop(t)
		watchCalls(t, f, webhooks, 0, time.Hour, a, b)
		if n := len(stateIn(t, f).retiring); n > maxRetiring+1 {
			t.Errorf("%d CAs are trusted", n)
		}
	})
	inBubble(t, "a replica with longer certificates is waited for", func(t *testing.T, f *fakeCluster) {
		o := slowOptions()
		o.LeafLifetime = 60 * day
		away := &failing{cluster: f}
		long := startReplica(t, o, away)
		defer long.stop(t)
		short := startReplica(t, slowOptions(), f)
		defer short.stop(t)
		settleSlowly()
		away.set(errFault)
		askToRotate(f)
		watchCalls(t, f, webhooks, 0, 50*day, long)
	})
	inBubble(t, "a caBundle that cannot be written is not trusted", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), &unwritable{f, webhooks})
		defer r.stop(t)
		settle()
		if st := r.Status(); st.Trusted || st.NotReady == nil || st.Err == nil {
			t.Errorf("status: %+v", st)
		}
	})
}

// TestTwoSources runs two sources with one target, as after a chart is installed twice or the Secret is renamed. Each
// source must keep the other's CA, and they must not overwrite each other again and again.
func TestTwoSources(t *testing.T) {
	inBubble(t, "two", func(t *testing.T, f *fakeCluster) {
		g := newFakeCluster()
		g.targets, g.past = f.targets, f.past // the same targets with another Secret
		a := startReplica(t, slowOptions(), f)
		o := slowOptions()
		o.Secret = "other-ca"
		b := startReplica(t, o, &sharedTargets{g, f})
		defer a.stop(t)
		defer b.stop(t)
		if settleSlowly(); Ready(b)(t.Context()) != nil {
			t.Error(Ready(b)(t.Context()))
		}
		watchCalls(t, f, webhooks, 0, 8*day, a, b)
		askToRotate(f)
		watchCalls(t, f, webhooks, 0, 16*day, a, b)
		if n := len(f.past[webhooks.String()]); n > 10 {
			t.Errorf("the caBundle was written %d times", n)
		}
		if n := len(parseBundle(f.bundleAt(webhooks, time.Now()))); n != 2 || a.Status().Rotations != 1 {
			t.Errorf("%d CAs are trusted, want one of each; %+v", n, a.Status())
		}
	})
}

// sharedTargets has its Secret in one cluster and its targets in another.
type sharedTargets struct {
	cluster
	targets cluster
}

func (s *sharedTargets) ReadTarget(ctx context.Context, t kube.Target) (kube.TargetState, error) {
	return s.targets.ReadTarget(ctx, t)
}

func (s *sharedTargets) WriteTarget(ctx context.Context, t kube.Target, st kube.TargetState, bundle []byte) error {
	return s.targets.WriteTarget(ctx, t, st, bundle)
}

// TestReadyStays causes problems that all replicas share. No replica that was ready may become unready.
func TestReadyStays(t *testing.T) {
	inBubble(t, "ready", func(t *testing.T, f *fakeCluster) {
		o := testOptions()
		elected := make(chan struct{})
		o.Elected, o.Targets = elected, append(o.Targets, others)
		leader := startReplica(t, testOptions(), f)
		r := startReplica(t, o, f)
		defer r.stop(t)
		settle()
		leader.stop(t)
		f.createTarget(others, nil)
		elapse(time.Hour)
		if st := r.Status(); st.Trusted || st.NotReady != nil || Ready(r)(t.Context()) != nil {
			t.Errorf("without a leader, and with a new target: %+v", st)
		}
		close(elected)
		elapse(time.Hour)
		if st := r.Status(); !st.Trusted || st.Err != nil {
			t.Errorf("elected: %+v", st)
		}
	})
}

func TestOnlyConflicts(t *testing.T) {
	other := errors.New("other")
	rows := []struct {
		err  error
		want bool
	}{
		{nil, false}, {kube.ErrConflict, true}, {other, false},
		{errors.Join(kube.ErrConflict, fmt.Errorf("x: %w", kube.ErrConflict)), true},
		{errors.Join(kube.ErrConflict, errors.Join(other, kube.ErrConflict)), false},
	}
	for _, row := range rows {
		if got := onlyConflicts(row.err); got != row.want {
			t.Errorf("%v: got %t", row.err, got)
		}
	}
}

// A short outage of the API server does not make a new replica ready too soon.
func TestReadyIgnoresAFault(t *testing.T) {
	inBubble(t, "fault", func(t *testing.T, f *fakeCluster) {
		other, err := newAuthority("other", ECDSAP256, time.Now(), 365*day, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.createTarget(webhooks, encodeCertificate(other.cert))
		o := testOptions()
		o.Settle, o.Interval = time.Hour, time.Minute
		away := &failing{cluster: f}
		r := startReplica(t, o, away)
		defer r.stop(t)
		elapse(10 * time.Minute)
		away.set(errFault)
		elapse(10 * time.Minute)
		if Ready(r)(t.Context()) == nil {
			t.Error("ready while the caBundle cannot be read, and has not settled")
		}
		away.set(nil)
		elapse(2 * time.Minute)
		if Ready(r)(t.Context()) == nil {
			t.Error("ready before the CA has settled")
		}
		elapse(time.Hour)
		if err := Ready(r)(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestReplicaReturnsWithNewerState cuts the connection of a replica that knows that a CA was retired. Meanwhile another
// replica starts from an old copy of the Secret and uses that CA. When the first replica returns, it must not remove
// the CA.
func TestReplicaReturnsWithNewerState(t *testing.T) {
	inBubble(t, "return", func(t *testing.T, f *fakeCluster) {
		away := &failing{cluster: f}
		before := startReplica(t, slowOptions(), away)
		defer before.stop(t)
		settleSlowly()
		copied := f.data()
		askToRotate(f)
		settleSlowly()
		elapse(8 * day) // the first CA is no longer trusted
		away.set(errFault)
		elapse(2 * time.Hour)
		f.setSecret(copied)
		after := startReplica(t, slowOptions(), f)
		defer after.stop(t)
		elapse(4 * time.Hour)
		if err := Ready(after)(t.Context()); err != nil {
			t.Fatal(err)
		}
		away.set(nil)
		watchCalls(t, f, webhooks, 30*time.Second, 2*day, before, after)
		elapse(9 * day)
		if n := len(parseBundle(f.bundleAt(webhooks, time.Now()))); n != 1 {
			t.Errorf("%d CAs are trusted at the end", n)
		}
	})
}

// TestSignsAgain restores an old copy of the Secret. A replica may have just started with the signing CA of that copy.
// So this CA must stay trusted while a certificate of that replica can be valid.
func TestSignsAgain(t *testing.T) {
	known := sampleState(t)
	p := policy{leafLifetime: day, skew: time.Hour}
	now := known.signing.cert.NotBefore.Add(10 * day)
	first := known.clone()
	p.sign(known, now)
	again, until := now.Add(day), now.Add(2*day+2*time.Hour)
	known.generation += 5
	for _, at := range []time.Time{again, again.Add(30 * day)} {
		if at != again { // by then it is retired
			until = until.Add(30 * day)
			known.dropEnded(at)
		}
		merged := p.merge(first, known, at)
		i := slices.IndexFunc(merged.retiring, func(r retiring) bool { return r.cert.Equal(first.signing.cert) })
		if i < 0 || !merged.retiring[i].until.Equal(until) || merged.hasRetired(first.signing.id(), true) {
			t.Errorf("at %s: %+v, want until %s", at, merged, until)
		}
	}
}

// TestForeignOfTwoTargets has a foreign CA that was found in one target, and later in a second one. When the trust ends
// in the first target, the second target must still trust the CA.
func TestForeignOfTwoTargets(t *testing.T) {
	s := sampleState(t)
	theirs := s.retiring[slices.IndexFunc(s.retiring, func(r retiring) bool { return r.target != "" })]
	later := retiring{theirs.cert, theirs.until.Add(day), "elsewhere"}
	s.retiring = append(s.retiring, later)
	known := s.clone()
	s.dropEnded(theirs.until)
	if s.generation++; !slices.ContainsFunc(s.trustedBy("elsewhere"), theirs.cert.Equal) || slices.ContainsFunc(s.trustedBy("somewhere"), theirs.cert.Equal) {
		t.Error("it is over in the wrong target")
	}
	merged := (policy{leafLifetime: day}).merge(s, known, theirs.until)
	if !slices.ContainsFunc(merged.trustedBy("elsewhere"), theirs.cert.Equal) || slices.ContainsFunc(merged.trustedBy("somewhere"), theirs.cert.Equal) {
		t.Error("it is over in the wrong target for a replica that did not know")
	}
	if merged = (policy{leafLifetime: day}).merge(known, s, theirs.until); !slices.ContainsFunc(merged.trustedBy("elsewhere"), theirs.cert.Equal) {
		t.Error("an old copy ends it")
	}
}
