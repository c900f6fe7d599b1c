// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// slow is an API server whose requests take a random time, so that the requests of several replicas interleave.
type slow struct {
	*laggard
	mu     *sync.Mutex
	random *rand.Rand
}

func (s *slow) wait() {
	s.mu.Lock()
	d := time.Duration(s.random.Int64N(int64(20 * time.Millisecond)))
	s.mu.Unlock()
	sleep(context.Background(), d)
}

func (s *slow) read(ctx context.Context, which sort) (*unstructured.Unstructured, error) {
	defer s.wait()
	return s.laggard.read(ctx, which)
}

func (s *slow) apply(ctx context.Context, which sort, object *unstructured.Unstructured, force bool) error {
	s.wait()
	defer s.wait()
	return s.laggard.apply(ctx, which, object, force)
}

func (s *slow) remove(ctx context.Context, which sort, l live) error {
	s.wait()
	defer s.wait()
	return s.laggard.remove(ctx, which, l)
}

// Several replicas install at random times, and a user uninstalls at a random time. The validating webhooks must never
// be enforced without the mutating ones.
func TestOrderWithManyReplicas(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			between := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
			o := options()
			o.FailOpenFirst = random.IntN(2) == 0
			first, c := newFake(t, o, denying("verify.example.com"), labelling("inject.example.com"))
			l := newLaggard(t, c)
			l.delay = map[sort]time.Duration{mutating: between(3 * time.Second), validating: between(3 * time.Second)}
			l.notYet = time.Now().Add(between(time.Minute))
			until := between(time.Minute)
			api := &slow{l, &sync.Mutex{}, random}
			first.cluster = api
			bound, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			var running sync.WaitGroup
			starts := []time.Duration{between(20 * time.Second), between(20 * time.Second), between(20 * time.Second)}
			for _, after := range starts[:1+random.IntN(3)] {
				i, _ := newFake(t, o, denying("verify.example.com"), labelling("inject.example.com"))
				i.cluster = api
				running.Go(func() {
					sleep(t.Context(), after)
					if err := i.Run(bound); err != nil {
						t.Error(err)
					}
				})
			}
			sleep(t.Context(), until)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_ = first.Remove(ctx) // a replica that starts later installs again
			running.Wait()
			if bound.Err() != nil {
				t.Errorf("seed %d: it does not end", seed)
			}
			if err := first.Remove(bound); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			l.fakeCluster.mu.Lock()
			defer l.fakeCluster.mu.Unlock()
			there := map[sort]bool{}
			for _, change := range l.log {
				for _, s := range sorts {
					if change == string(s)+" true" || change == string(s)+" false" {
						there[s] = change == string(s)+" true"
					}
				}
				if there[validating] && !there[mutating] {
					t.Errorf("seed %d: verified without being mutated: %v", seed, l.log)
				}
			}
		})
	}
}
