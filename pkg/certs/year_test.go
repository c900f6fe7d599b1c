// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

var webhooks = Target{Kind: MutatingWebhookConfiguration, Name: "hooks"}

func testOptions() Options {
	return Options{
		Namespace: "hooks", Secret: "ca", DNSNames: ServiceNames("hooks", "hooks"), Targets: []Target{webhooks},
		Interval: 10 * time.Minute, // fewer checks make simulated days fast
	}
}

// slowOptions are for tests of many days, with longer intervals.
func slowOptions() Options {
	o := testOptions()
	o.Interval = time.Hour
	return o
}

// settleSlowly is settle for slowOptions.
func settleSlowly() { elapse(3 * time.Hour) }

// elapse advances the clock of a synctest bubble.
func elapse(d time.Duration) { <-time.After(d) }

func quiet() logr.Logger { return funcr.New(func(_, _ string) {}, funcr.Options{}) }

// A replica is a source that runs until it is killed.
type replica struct {
	*SelfManaged
	kill  context.CancelFunc
	ended chan error
	ready bool // it was ready once, so API servers call it

	number     int // for messages of a failed test
	elect      func()
	difference atomic.Int64 // of its clock from the test's clock
}

func startReplica(t *testing.T, o Options, c cluster) *replica {
	t.Helper()
	r := newReplica(t, o, c)
	r.run(t)
	return r
}

func newReplica(t *testing.T, o Options, c cluster) *replica {
	t.Helper()
	o, err := o.completed()
	if err != nil {
		t.Fatal(err)
	}
	if o.Logger.GetSink() == nil {
		o.Logger = quiet()
	}
	return &replica{SelfManaged: newSelfManaged(o, c), ended: make(chan error, 1)}
}

func (r *replica) run(t *testing.T) {
	t.Helper()
	var ctx context.Context
	ctx, r.kill = context.WithCancel(t.Context())
	go func() { r.ended <- r.Start(ctx) }()
}

func (r *replica) stop(t *testing.T) {
	t.Helper()
	r.kill()
	if err := <-r.ended; err != nil {
		t.Errorf("a source ended with %v", err)
	}
}

// call verifies the replica's certificate as an API server with this caBundle does.
func (r *replica) call(bundle []byte) error { return r.callAt(bundle, time.Now()) }

func (r *replica) callAt(bundle []byte, now time.Time) error {
	c, err := r.GetCertificate(nil)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = c.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "hooks.hooks.svc", CurrentTime: now})
	return err
}

// TestYear runs three replicas for a simulated year. API servers learn of a caBundle as late as Settle allows. No call
// may fail, the CA must be replaced when it is due, and at the end one CA is trusted.
func TestYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(webhooks)
		o := testOptions()
		o.Interval = 3 * time.Hour // keeps a simulated year fast
		o.Settle = 12 * time.Hour
		replicas := []*replica{startReplica(t, o, f), startReplica(t, o, f), startReplica(t, o, f)}
		elapse(2*o.Settle + 2*o.Interval)
		calls, begin := 0, time.Now()
		for time.Since(begin) < 366*day {
			elapse(time.Duration(1+rand.IntN(12)) * time.Hour)
			lag := time.Duration(rand.Int64N(int64(o.Settle)))
			for i, r := range replicas {
				calls++
				if err := r.call(f.bundleAt(webhooks, time.Now().Add(-lag))); err != nil {
					t.Fatalf("after %s replica %d fails a call that lags by %s: %v", time.Since(begin), i, lag, err)
				}
			}
		}
		for _, r := range replicas {
			st := r.Status()
			// A CA is replaced after 8 months; a certificate every 4.67 days.
			if st.Err != nil || !st.Trusted || st.Rotations != 1 || st.Renewals < 75 || st.Renewals > 82 {
				t.Errorf("status: %+v", st)
			}
			r.stop(t)
		}
		t.Logf("%d calls in a year", calls)
	})
}
