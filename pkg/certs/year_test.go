// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"slices"
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
		Interval: 10 * time.Minute, // long times are short this way
	}
}

// elapse lets time pass on the clock of a bubble.
func elapse(d time.Duration) { <-time.After(d) }

func quiet() logr.Logger { return funcr.New(func(_, _ string) {}, funcr.Options{}) }

// A replica is a source that runs until it is killed.
type replica struct {
	*SelfManaged
	kill  context.CancelFunc
	ended chan error
	ready bool // it once was, so calls come to it
}

func startReplica(t *testing.T, o Options, c cluster) *replica {
	t.Helper()
	o, err := o.completed()
	if err != nil {
		t.Fatal(err)
	}
	if o.Logger.GetSink() == nil {
		o.Logger = quiet()
	}
	ctx, kill := context.WithCancel(t.Context())
	r := &replica{SelfManaged: newSelfManaged(o, c), kill: kill, ended: make(chan error, 1)}
	go func() { r.ended <- r.Start(ctx) }()
	return r
}

func (r *replica) stop(t *testing.T) {
	t.Helper()
	r.kill()
	if err := <-r.ended; err != nil {
		t.Errorf("a source ended with %v", err)
	}
}

// call verifies what the replica serves as an API server would that knows this bundle.
func (r *replica) call(bundle []byte) error {
	c, err := r.GetCertificate(nil)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = c.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "hooks.hooks.svc", CurrentTime: time.Now()})
	return err
}

// A year with certificates of all ages, three replicas, and API servers that learn of a bundle
// as late as Settle allows: no call fails, the CA is replaced when it should, and at the end
// one CA is trusted.
func TestYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(webhooks)
		o := testOptions()
		o.Interval = time.Hour // a year has many of them
		o.Settle = 6 * time.Hour
		replicas := []*replica{startReplica(t, o, f), startReplica(t, o, f), startReplica(t, o, f)}
		elapse(2*o.Settle + 2*time.Hour)
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

// A story is a random life of a cluster.
type story struct {
	t        *testing.T
	f        *fakeCluster
	o        Options
	random   *rand.Rand
	replicas []*replica
	copies   []map[string][]byte // of the Secret
	events   map[string]int
}

// Whatever happens to the Secret, to replicas and to the connection, no call fails.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomLife(t, seed) })
		})
	}
}

func randomLife(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	s := &story{t: t, f: newFakeCluster(webhooks), random: random, o: testOptions(), events: map[string]int{}}
	s.o.CALifetime, s.o.LeafLifetime = 24*time.Hour, 4*time.Hour
	s.o.Settle, s.o.Interval, s.o.ClockSkew = 30*time.Minute, 2*time.Minute, 5*time.Minute
	for range 3 {
		s.add()
	}
	elapse(2 * time.Hour)
	begin := time.Now()
	for time.Since(begin) < 4*24*time.Hour {
		elapse(time.Duration(random.Int64N(int64(20 * time.Minute))))
		s.check(begin)
		if random.IntN(12) == 0 {
			s.happen()
		}
	}
	for _, r := range s.replicas {
		r.stop(t)
	}
	if s.events["call"] < 700 {
		t.Errorf("too little was tried: %v", s.events)
	}
	t.Logf("%v", s.events)
}

func (s *story) add() {
	l := &lagging{cluster: s.f, random: rand.New(rand.NewPCG(s.random.Uint64(), 0)), most: 30 * time.Second, pauses: 30}
	if s.random.IntN(2) == 0 {
		l.faults = 10
	}
	s.replicas = append(s.replicas, startReplica(s.t, s.o, l))
}

// check calls every replica that is in service, as an API server that knows the bundle of a
// while ago.
func (s *story) check(begin time.Time) {
	lag := time.Duration(s.random.Int64N(int64(s.o.Settle)))
	bundle := s.f.bundleAt(webhooks, time.Now().Add(-lag))
	for i, r := range s.replicas {
		// A new replica is in service once it is ready, and then it takes a while until it is called.
		if !r.ready {
			r.ready = Ready(r)(s.t.Context()) == nil
			continue
		}
		s.events["call"]++
		if err := r.call(bundle); err != nil {
			s.t.Fatalf("after %s replica %d fails a call that lags by %s: %v\n%v", time.Since(begin), i, lag, err, s.events)
		}
	}
}

func (s *story) happen() {
	i := s.random.IntN(len(s.replicas))
	switch s.random.IntN(6) {
	case 0:
		if s.ready() < 2 && s.replicas[i].ready {
			return // with the last replica its memory goes, and calls fail anyway
		}
		s.events["killed"]++
		s.replicas[i].stop(s.t)
		s.replicas = append(s.replicas[:i:i], s.replicas[i+1:]...)
		s.add()
	case 1:
		s.events["deleted"]++
		s.f.setSecret(nil)
	case 2:
		s.events["emptied"]++
		s.f.setSecret(map[string][]byte{})
	case 3:
		s.events["damaged"]++
		data := s.f.data()
		if text := data[stateKey]; len(text) > 0 {
			i := s.random.IntN(len(text))
			if s.random.IntN(2) == 0 {
				data[stateKey] = text[:i]
			} else {
				data[stateKey] = append(append(slices.Clone(text[:i]), '7'), text[i+1:]...)
			}
		}
		s.f.setSecret(data)
	case 4:
		s.events["rotate"]++
		data := s.f.data()
		if data != nil {
			data[rotateKey] = []byte("now")
			s.f.setSecret(data)
		}
	case 5:
		s.events["put back"]++ // by whoever deploys what is in a repository, or restores a backup
		if len(s.copies) > 0 {
			s.f.setSecret(s.copies[s.random.IntN(len(s.copies))])
		}
	}
	if data := s.f.data(); len(data[stateKey]) > 0 && s.random.IntN(3) == 0 {
		s.copies = append(s.copies, data)
	}
}

func (s *story) ready() int {
	n := 0
	for _, r := range s.replicas {
		if r.ready {
			n++
		}
	}
	return n
}
