// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

// withClock starts a replica whose clock is ahead of the test's clock.
func withClock(t *testing.T, o Options, f *fakeCluster, ahead time.Duration) *replica {
	t.Helper()
	c := &lagging{cluster: f, random: rand.New(rand.NewPCG(1, 1))}
	r := newReplica(t, o, c)
	r.difference.Store(int64(ahead))
	c.clock = func() time.Duration { return time.Duration(r.difference.Load()) }
	r.clock = func() time.Time { return wallClock().Add(c.clock()) }
	r.run(t)
	return r
}

func TestWrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{3 * time.Hour, -20 * day, 3650 * day, -3650 * day} {
		inBubble(t, "a replica beside others "+ahead.String(), func(t *testing.T, f *fakeCluster) {
			o := testOptions()
			o.CALifetime, o.Interval = 90*day, 3*time.Hour
			right := startReplica(t, o, f)
			defer right.stop(t)
			elapse(12 * time.Hour)
			before := stateIn(t, f).signing.id()
			wrong := withClock(t, o, f, ahead)
			defer wrong.stop(t)
			elapse(6 * time.Hour)
			if err := Ready(wrong)(t.Context()); err != nil {
				t.Errorf("not ready: %v", err)
			}
			watchCalls(t, f, webhooks, 0, 20*day, right, wrong)
			if s := stateIn(t, f); s.phase() != Stable || s.signing.id() != before {
				t.Errorf("what is in the Secret: %s", describe(f.data()))
			}
			askToRotate(f)
			watchCalls(t, f, webhooks, time.Minute, 30*day, right, wrong)
			st := wrong.Status()
			if st.ClockAhead != ahead || st.Err == nil || !strings.Contains(st.Err.Error(), clockDifference(ahead)) || !st.Trusted || st.Rotations == 0 || st.NotReady != nil {
				t.Errorf("status: %+v", st)
			}
			if st.Renewals > 20 {
				t.Errorf("%d certificates in 50 days", st.Renewals)
			}
			wrong.difference.Store(0)
			watchCalls(t, f, webhooks, 0, 9*day, right, wrong)
			if st := wrong.Status(); st.Err != nil || st.ClockAhead != 0 {
				t.Errorf("with the clock set right: %+v", st)
			}
		})
	}
	inBubble(t, "alone", func(t *testing.T, f *fakeCluster) {
		r := withClock(t, testOptions(), f, -2*time.Hour)
		defer r.stop(t)
		settle()
		if st := r.Status(); f.data() != nil || st.Err == nil || Ready(r)(t.Context()) == nil ||
			!strings.Contains(st.Err.Error(), "no CA yet: this machine's clock is 2h0m0s behind the API server's, and ClockSkew is 1h0m0s") {
			t.Errorf("the Secret has %q, and the status is %+v", f.data(), st)
		}
		r.difference.Store(0)
		settle()
		if err := r.call(f.bundleAt(webhooks, time.Now())); err != nil || r.Status().Err != nil {
			t.Errorf("%v, %+v", err, r.Status())
		}
	})
	inBubble(t, "the others begin anew", func(t *testing.T, f *fakeCluster) {
		wrong := withClock(t, slowOptions(), f, 0)
		defer wrong.stop(t)
		elapse(3 * time.Hour)
		askToRotate(f) // makes the state of this replica newer than the state of the replica that starts later
		elapse(3 * time.Hour)
		wrong.difference.Store(int64(2 * time.Hour))
		settleSlowly()
		f.setSecret(nil)
		right := startReplica(t, slowOptions(), f)
		defer right.stop(t)
		elapse(3 * time.Hour)
		watchCalls(t, f, webhooks, time.Minute, 20*day, right, wrong)
	})
	inBubble(t, "a step to another year and back", func(t *testing.T, f *fakeCluster) {
		r := withClock(t, testOptions(), f, 0)
		defer r.stop(t)
		settle()
		before := describe(f.data())
		for _, ahead := range []time.Duration{3650 * day, -3650 * day, 20 * time.Hour, -8 * day} {
			r.difference.Store(int64(ahead))
			if err := Ready(r)(t.Context()); err != nil && ahead < 0 {
				t.Errorf("before the next look: %v", err)
			}
			watchCalls(t, f, webhooks, 0, time.Hour, r)
			r.difference.Store(0)
			watchCalls(t, f, webhooks, 0, time.Hour, r)
		}
		if after := describe(f.data()); after != before {
			t.Errorf("the Secret was changed\nfrom %s\nto   %s", before, after)
		}
	})
}

// TestServerStepsBack sets the API server's clock back, so that the new serving certificate is not valid yet by that
// clock. The source must then serve a certificate that is valid, so that calls succeed.
func TestServerStepsBack(t *testing.T) {
	inBubble(t, "back", func(t *testing.T, f *fakeCluster) {
		var ahead atomic.Int64
		c := &lagging{cluster: f, random: rand.New(rand.NewPCG(1, 1)), clock: func() time.Duration { return time.Duration(ahead.Load()) }}
		r := startReplica(t, slowOptions(), c)
		defer r.stop(t)
		elapse(2*7*day/3 + 2*time.Hour) // a new certificate is an hour or two old
		leaf, _ := r.GetCertificate(nil)
		if age := time.Since(leaf.Leaf.NotBefore); age > 3*time.Hour+time.Minute {
			t.Fatalf("the certificate is %s old", age)
		}
		for _, back := range []time.Duration{12 * time.Hour, 0, 20 * day, 0} {
			ahead.Store(int64(back))
			elapse(2 * time.Hour)
			for range 100 {
				elapse(time.Hour)
				if err := r.callAt(f.bundleAt(webhooks, time.Now()), time.Now().Add(-back)); err != nil && back < 10*day { // then the CA is not valid yet
					t.Fatalf("the API server is %s behind: %v; %+v", back, err, r.Status())
				}
			}
		}
		if st := r.Status(); st.Renewals > 10 {
			t.Errorf("%d certificates", st.Renewals)
		}
	})
}

// One of several API servers has a wrong clock. A replica that sometimes gets a response from
// that API server keeps running, and keeps its certificate.
func TestOneOfSeveralAPIServers(t *testing.T) {
	for every := range int64(4) {
		inBubble(t, fmt.Sprintf("%d right answers between two wrong ones", every+1), func(t *testing.T, f *fakeCluster) {
			var answers atomic.Int64
			c := &lagging{cluster: f, random: rand.New(rand.NewPCG(1, 1)), clock: func() time.Duration {
				if answers.Add(1)%(every+2) == 0 {
					return 5 * time.Hour
				}
				return 0
			}}
			var lines []string
			o := slowOptions()
			o.Logger = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			r := startReplica(t, o, c)
			settleSlowly()
			askToRotate(f)
			watchCalls(t, f, webhooks, time.Minute, 12*time.Hour, r)
			if st := r.Status(); st.Err != nil || st.Rotations != 1 || st.Renewals != 1 {
				t.Errorf("status: %+v", st)
			}
			r.stop(t)
			if text := strings.Join(lines, "\n"); strings.Contains(text, "clock") {
				t.Errorf("the log is\n%s", text)
			}
		})
	}
}

// A clock difference within ClockSkew is logged once when it begins and once when it ends.
func TestClockDifferenceIsLogged(t *testing.T) {
	inBubble(t, "told", func(t *testing.T, f *fakeCluster) {
		var lines []string
		o := testOptions()
		o.Logger = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		r := withClock(t, o, f, 10*time.Minute)
		settle()
		if st := r.Status(); st.Err != nil || st.ClockAhead != 10*time.Minute {
			t.Errorf("status: %+v", st)
		}
		r.difference.Store(int64(time.Second))
		elapse(time.Hour) // three regular checks
		for i := range 10 {
			r.difference.Store(int64(2*time.Hour + time.Duration(i)*700*time.Millisecond))
			settle()
		}
		r.difference.Store(0)
		settle()
		r.stop(t)
		text := strings.Join(lines, "\n")
		if strings.Count(text, "2h0m0s ahead") != 1 || strings.Count(text, "no longer need attention") != 1 {
			t.Errorf("the log is\n%s", text)
		}
		if strings.Count(text, "this machine's clock is 10m0s ahead") != 1 || strings.Count(text, "agree again") != 2 {
			t.Errorf("the log is\n%s", text)
		}
	})
}
