// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// A faultProfile sets the faults of a random run.
type faultProfile struct {
	name     string
	replicas int
	lag      time.Duration // the longest delay of a request to the API server
	events   int           // one of this many checks also causes a random event
	clocks   bool          // clocks differ and step within ClockSkew
	broken   bool          // clocks are wrong by up to two years
	elected  bool          // only the elected replica may write
	options  bool          // options differ between replicas
	targets  bool          // targets are emptied, restored to an earlier version, and recreated
}

var faultProfiles = []faultProfile{
	{name: "three", replicas: 3, lag: 30 * time.Second, events: 60},
	{name: "rough", replicas: 4, lag: 10 * time.Second, events: 12},
	{name: "clocks", replicas: 3, lag: 15 * time.Second, events: 40, clocks: true},
	{name: "broken clocks", replicas: 3, lag: 10 * time.Second, events: 40, broken: true},
	{name: "elected", replicas: 3, lag: 10 * time.Second, events: 20, elected: true},
	{name: "all", replicas: 4, lag: 10 * time.Second, events: 30, clocks: true, options: true, targets: true},
}

// A simulation is a run of several replicas on a fake cluster, with random faults.
type simulation struct {
	faultProfile
	t        *testing.T
	f        *fakeCluster
	o        Options
	random   *rand.Rand
	begin    time.Time
	replicas []*replica
	started  int
	copies   []map[string][]byte // earlier contents of the Secret
	events   map[string]int

	mu  sync.Mutex // guards log
	log []string
}

// TestRandomRuns runs simulations with random faults of the Secret, the replicas and their connections. No call may
// fail. ADMITKIT_RUNS sets the number of runs for each profile, and makes the runs longer. ADMITKIT_SEED is the first
// seed. A seed repeats a run, except for the order of simultaneous events.
func TestRandomRuns(t *testing.T) {
	runs, err := strconv.ParseUint(os.Getenv("ADMITKIT_RUNS"), 10, 64)
	length := 4 * day
	if err != nil {
		runs, length = 1, 36*time.Hour // longer than the 24 hours of a CA
	}
	first, _ := strconv.ParseUint(os.Getenv("ADMITKIT_SEED"), 10, 64)
	for seed := first; seed < first+runs; seed++ {
		for _, c := range faultProfiles {
			t.Run(fmt.Sprintf("%s/seed=%d", c.name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { randomRun(t, c, seed, length) })
			})
		}
	}
}

func randomRun(t *testing.T, c faultProfile, seed uint64, length time.Duration) {
	random := rand.New(rand.NewPCG(seed, 0))
	s := &simulation{faultProfile: c, t: t, f: newFakeCluster(webhooks), random: random, o: testOptions(), events: map[string]int{}}
	s.o.CALifetime, s.o.LeafLifetime = 24*time.Hour, 4*time.Hour
	s.o.Settle, s.o.Interval, s.o.ClockSkew = 30*time.Minute, 2*time.Minute, 5*time.Minute
	s.begin, s.f.note = time.Now(), s.say
	defer func() {
		for _, r := range s.replicas {
			r.stop(t)
		}
	}()
	for range c.replicas {
		s.add()
	}
	elapse(2 * time.Hour)
	for time.Since(s.begin) < length {
		elapse(time.Duration(random.Int64N(int64(4 * time.Minute))))
		s.check()
		if random.IntN(c.events) == 0 {
			s.disturb()
		}
	}
	if s.events["call"] < int(length/(2*time.Minute)) {
		t.Errorf("too little was tried: %v", s.events)
	}
	t.Logf("%v", s.events)
}

func (s *simulation) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%12s  ", time.Since(s.begin).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// tail returns the last events before a failure.
func (s *simulation) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log[max(0, len(s.log)-200):], "\n")
}

func (s *simulation) add() {
	l := &lagging{cluster: s.f, random: rand.New(rand.NewPCG(s.random.Uint64(), 0)), most: s.lag, pauses: 30}
	if s.random.IntN(2) == 0 {
		l.faults = 10
	}
	o, number := s.o, s.started
	s.started++
	if s.options {
		o.LeafLifetime = 3*time.Hour + time.Duration(s.random.IntN(60))*time.Minute
		o.Interval = time.Duration(1+s.random.IntN(4)) * time.Minute
		o.Settle += time.Duration(s.random.IntN(20)) * time.Minute
	}
	o.Logger = funcr.New(func(_, args string) { s.say("%d: %s", number, args) }, funcr.Options{})
	elected := make(chan struct{})
	if s.elected {
		o.Elected = elected
	}
	r := newReplica(s.t, o, l)
	r.number, r.elect = number, sync.OnceFunc(func() { close(elected) })
	if s.clocks || s.broken {
		s.setClock(r)
		l.clock = func() time.Duration { return time.Duration(r.difference.Load()) }
		r.clock = func() time.Time { return wallClock().Add(l.clock()) }
	}
	r.run(s.t)
	s.replicas = append(s.replicas, r)
	s.replicas[0].elect()
}

// setClock steps the clock of a replica. Two clocks differ by at most ClockSkew. With broken clocks,
// some differ by much more, in either direction.
func (s *simulation) setClock(r *replica) {
	room := s.o.ClockSkew
	if s.broken && s.random.IntN(2) == 0 {
		room = []time.Duration{time.Hour, 5 * time.Hour, 5 * day, 1000 * day}[s.random.IntN(4)]
	}
	r.difference.Store(s.random.Int64N(int64(room)) - int64(room)/2)
	s.say("the clock of %d is %s ahead", r.number, time.Duration(r.difference.Load()))
}

// check calls every replica in service with each caBundle that an API server may still use.
func (s *simulation) check() {
	for _, r := range s.replicas {
		// A new replica is in service some time after it became ready.
		if !r.ready {
			r.ready = Ready(r)(s.t.Context()) == nil
			continue
		}
		s.events["call"]++
		leaf, err := r.GetCertificate(nil)
		if err != nil {
			s.t.Fatal(err)
		}
		now := time.Now()
		if now.Before(leaf.Leaf.NotBefore) || !now.Before(leaf.Leaf.NotAfter) {
			s.t.Fatalf("replica %d serves what is not valid: %s to %s\n%s", r.number, leaf.Leaf.NotBefore, leaf.Leaf.NotAfter, s.tail())
		}
		for _, view := range s.f.views(webhooks, s.o.Settle) {
			signed := func(c *x509.Certificate) bool { return bytes.Equal(c.SubjectKeyId, leaf.Leaf.AuthorityKeyId) }
			if !view.spoilt && !slices.ContainsFunc(view.parsed, signed) {
				s.t.Fatalf("after %s replica %d fails the call of an API server that knows the bundle of %s before: %s\n%v\n%s",
					now.Sub(s.begin), r.number, now.Sub(view.since), idsOf(view.bundle), s.events, s.tail())
			}
		}
	}
}

func (s *simulation) disturb() {
	i, kinds := s.random.IntN(len(s.replicas)), 6
	if s.targets {
		kinds = 8
	}
	switch s.random.IntN(kinds) {
	case 0:
		if s.ready() < 2 && s.replicas[i].ready {
			return // without any replica, all calls fail
		}
		s.tell("killed")
		s.replicas[i].stop(s.t)
		s.replicas = append(s.replicas[:i:i], s.replicas[i+1:]...)
		s.add()
	case 1:
		s.tell("deleted")
		s.f.setSecret(nil)
	case 2:
		s.tell("emptied")
		s.f.setSecret(map[string][]byte{})
	case 3:
		s.tell("damaged")
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
		s.tell("rotate")
		data := s.f.data()
		if data != nil {
			data[rotateKey] = []byte("now")
			s.f.setSecret(data)
		}
	case 5:
		s.tell("put back") // a deployment tool or a backup restores an earlier version
		if len(s.copies) > 0 {
			s.f.setSecret(s.copies[s.random.IntN(len(s.copies))])
		}
	case 6:
		s.tell("target emptied")
		s.f.createTarget(webhooks, nil)
	case 7:
		s.tell("target put back")
		s.f.createTarget(webhooks, s.f.bundleAt(webhooks, time.Now().Add(-time.Duration(s.random.IntN(72))*time.Hour)))
	}
	if s.clocks || s.broken {
		s.setClock(s.replicas[s.random.IntN(len(s.replicas))])
	}
	if data := s.f.data(); len(data[stateKey]) > 0 && s.random.IntN(3) == 0 {
		s.copies = append(s.copies, data)
	}
}

func (s *simulation) tell(event string) {
	s.events[event]++
	s.say("%s", event)
}

func (s *simulation) ready() int {
	n := 0
	for _, r := range s.replicas {
		if r.ready {
			n++
		}
	}
	return n
}
