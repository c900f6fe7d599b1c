// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	hostileRate = 20 // creates per second by the API server's client, with two calls each
	// The replica may keep this many more goroutines and bytes than before the attack. The API
	// server's connections have two goroutines each, and the Go runtime does not return all memory.
	hostileGoroutines = 60
	hostileMemory     = 24 << 20
)

// TestHostileClientsFailNoHonestCall runs all attacks at once. Meanwhile, calls of the API server,
// and calls that each need a new handshake, must succeed. Afterwards the replica must have about as
// many goroutines and as much memory as before.
func TestHostileClientsFailNoHonestCall(t *testing.T) {
	s := newService(t, 0)
	s.settings = Settings{
		Server: Admitkit, Pause: 5 * time.Millisecond, ShutdownDelay: -1,
		MaxInFlight: 200, MaxInFlightBytes: 32 << 20, MaxConnections: 1000, MemoryGoal: memoryGoal,
	}
	bundle := s.useStatic(t)
	s.configure(t, bundle)
	s.start(t)
	s.awaitEnforced(t)
	replica := s.replicas[0]

	warm := startLoad(t, hostileRate, create(s.namespace, nil))
	warm.awaitCalls(t, hostileRate)
	warm.end()
	before, rss := settled(t, replica)

	v := &victim{addr: replica.hello.Hooks, body: newReview(t, s.namespace, reviewBytes)}
	honest := startLoad(t, hostileRate, create(s.namespace, nil))
	fresh := newCaller(t, v.addr, s.namespace, s.host, bundle, 1<<10)
	fresh.disableKeepAlives()
	stop := attackWith(t, v)
	direct := startLoad(t, 5, func(ctx context.Context) error { return fresh.call(ctx, 10*time.Second) })
	lasts := time.NewTimer(scale(7*time.Second, 45*time.Second))
	defer lasts.Stop()
	<-lasts.C
	during, err := replica.stats("")
	if err != nil {
		t.Error(err)
	}
	counts := stop()
	lines := replica.log.count()
	honest.end()
	direct.end()

	peak := replica.memory(t, "VmHWM") - replica.memory(t, "RssFile")
	for _, l := range []*load{honest, direct} {
		calls, failed := l.count()
		note := fmt.Sprintf("goroutines %d, %d under attack, memory at most %d MiB", before.Goroutines, during.Goroutines, peak>>20)
		if l == direct {
			note = "with a new handshake each"
		}
		report(t, row{calls: calls, failed: failed, p50: l.percentile(.5), p99: l.percentile(.99), note: note})
		if failed > 0 {
			t.Errorf("honest calls failed:\n%s", l.failures(l.start))
		}
	}
	t.Logf("%d lines in the log of the replica", lines)
	for i, a := range attacks {
		t.Logf("%6d × %s", counts[i].Load(), a.name)
		if counts[i].Load() == 0 {
			t.Errorf("the attack with %s never ran", a.name)
		}
	}
	backToBase(t, replica, before, rss)
}

// attackWith starts all attacks. The returned function stops them and returns how often each ran.
func attackWith(t *testing.T, v *victim) (stop func() []*atomic.Int64) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	var counts []*atomic.Int64
	for _, a := range attacks {
		times := &atomic.Int64{}
		counts = append(counts, times)
		all.Go(func() { a.run(ctx, v, times) })
	}
	stop = func() []*atomic.Int64 {
		cancel()
		all.Wait()
		return counts
	}
	t.Cleanup(func() { stop() })
	return stop
}

// settled returns the state and the memory of a replica after it returned free memory to the system.
func settled(t *testing.T, r *replica) (Stats, int64) {
	t.Helper()
	stats, err := r.stats("?gc=1")
	if err != nil {
		t.Fatal(err)
	}
	return stats, r.memory(t, "RssAnon")
}

// backToBase waits until the replica has about as many goroutines and bytes as before.
func backToBase(t *testing.T, r *replica, before Stats, rss int64) {
	t.Helper()
	var now Stats
	var held int64
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		now, held = settled(t, r)
		return now.Goroutines <= before.Goroutines+hostileGoroutines && held <= rss+hostileMemory, nil
	})
	t.Logf("goroutines: %d before, %d after; memory: %d MiB before, %d MiB after", before.Goroutines, now.Goroutines, rss>>20, held>>20)
	if err != nil {
		t.Errorf("20 s after the attack the replica still has too many goroutines or too much memory")
	}
}
