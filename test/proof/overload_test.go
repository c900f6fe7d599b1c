// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// These constants limit the replica to about 5 calls per second, so that the proof does not depend on the speed of the
// machine.
const (
	overloadInFlight = 4
	overloadPause    = 800 * time.Millisecond
	capacity         = overloadInFlight * int(time.Second/overloadPause) // calls per second
	overloadTimes    = 10
	reviewBytes      = 1 << 20

	// The replica may use 1.5 times GOMEMLIMIT, because the Go runtime does not count all memory and may exceed its
	// limit. The pages of the program are not counted.
	memoryGoal  = 64 << 20
	memoryBound = memoryGoal * 3 / 2
)

// TestOverloadIsShed makes ten times the calls that a replica can take. The replica must admit calls at
// half its capacity or more, refuse the others, stay within its memory bound, and recover in seconds.
func TestOverloadIsShed(t *testing.T) {
	s := newService(t, 0)
	s.settings = Settings{
		Server: Admitkit, Pause: overloadPause, ShutdownDelay: -1,
		MaxInFlight: overloadInFlight, MaxInFlightBytes: 16 << 20, MaxConnections: 1000, MemoryGoal: memoryGoal,
	}
	bundle := s.useStatic(t)
	s.configure(t, bundle)
	s.start(t)
	s.awaitEnforced(t)
	replica := s.replicas[0]

	calm := newCaller(t, replica.hello.Hooks, s.namespace, s.host, bundle, reviewBytes)
	unloaded(calm, overloadInFlight/2, scale(5, 40))
	if _, failed := calm.calls.count(); failed > 0 || calm.shed.Load() > 0 {
		t.Fatalf("without load, the replica refused %d calls, and these failed:\n%s", calm.shed.Load(), calm.calls.failures(time.Now()))
	}

	busy := newCaller(t, replica.hello.Hooks, s.namespace, s.host, bundle, reviewBytes)
	var users samples // calls through the API server
	over := overload(t, s, busy, &users)
	recovery(t, busy, over)

	peak := replica.memory(t, "VmHWM") - replica.memory(t, "RssFile")
	calls, failed := busy.calls.count()
	admitted := calls - failed
	base, p99 := calm.attempts.percentile(.99), busy.attempts.percentile(.99)
	all := over.made
	report(t, row{
		calls: all, failed: failed, shed: int(busy.shed.Load()), retried: int(busy.retried.Load()),
		p50: busy.attempts.percentile(.5), p99: p99,
		note: fmt.Sprintf("%d admitted, p99 unloaded %s, memory at most %d MiB of %d MiB", admitted, base.Round(time.Millisecond), peak>>20, memoryBound>>20),
	})
	if failed > 0 {
		t.Errorf("calls that the replica neither answered nor refused:\n%s", busy.calls.failures(over.start))
	}
	if want := int(over.lasted.Seconds()) * capacity / 2; admitted < want {
		t.Errorf("the replica admitted %d calls in %s, but half its capacity is %d", admitted, over.lasted, want)
	}
	if shed := int(busy.shed.Load()); shed < over.made {
		t.Errorf("the replica refused only %d attempts of %d calls, so this was no overload", shed, over.made)
	}
	if p99 > 3*base {
		t.Errorf("p99 of admitted calls is %s, more than 3 times the %s without load", p99, base)
	}
	if peak > memoryBound {
		t.Errorf("the replica used %d MiB, more than %d MiB", peak>>20, memoryBound>>20)
	}
	checkUsers(t, &users, over)
}

// unloaded lets several callers make calls at the same time, too few to overload the replica. Each makes one call after
// the other.
func unloaded(c *caller, callers, each int) {
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range each {
				_ = c.call(context.Background(), 5*time.Second)
			}
		})
	}
	group.Wait()
}

// An overloading describes one run of the function overload: its time, and the number of calls that it made.
type overloading struct {
	start  time.Time
	end    time.Time
	lasted time.Duration
	made   int
}

// overload makes overloadTimes as many calls as the replica can take, and one call per second through the API server.
// At the end it cancels the direct calls, and waits for those through the API server.
func overload(t *testing.T, s *service, c *caller, users *samples) overloading {
	t.Helper()
	o := overloading{start: time.Now(), lasted: scale(5*time.Second, time.Minute)}
	ctx, giveUp := context.WithCancel(t.Context())
	l := startLoad(t, capacity*overloadTimes, func(context.Context) error {
		if err := c.call(ctx, 3500*time.Millisecond); !errors.Is(err, errShed) {
			return err
		}
		return nil
	})
	large := map[string]string{"text": strings.Repeat("x", reviewBytes/2)}
	side := startLoad(t, 1, create(s.namespace, large))
	tick, done := time.NewTicker(5*time.Second), time.NewTimer(o.lasted)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
			calls, failed := c.calls.count()
			progress("%s: %d admitted, %d failed, %d turned away", t.Name(), calls-failed, failed, c.shed.Load())
		case <-done.C:
			over = true
		}
	}
	o.end = time.Now()
	side.stop()
	giveUp()
	l.end()
	o.made, _ = l.count()
	side.end()
	users.list = side.all()
	return o
}

// recovery checks that the replica admits every call that begins two seconds or more after the overload.
func recovery(t *testing.T, c *caller, o overloading) {
	t.Helper()
	after := &caller{url: c.url, http: c.http, body: c.body, attempts: &samples{}, calls: &samples{}}
	for time.Since(o.end) < scale(3*time.Second, 6*time.Second) {
		began := time.Now()
		later, err := after.try(t.Context(), 5*time.Second)
		if failed := err != nil || later >= 0; failed && began.Sub(o.end) > 2*time.Second {
			t.Errorf("%s after the overload, the replica did not admit a call: %v", began.Sub(o.end), err)
		}
	}
}

// checkUsers checks the calls through the API server, which repeats a refused call until its timeout.
// So calls that began less than 5 seconds before the end must succeed. Earlier ones may fail, but only
// because the replica was busy until their timeout.
func checkUsers(t *testing.T, users *samples, o overloading) {
	t.Helper()
	succeeded, late, other := 0, 0, &samples{}
	for _, one := range users.all() {
		switch {
		case one.err == "":
			succeeded++
		case o.end.Sub(one.at) < 5*time.Second:
			late++
			other.list = append(other.list, one)
		case !strings.Contains(one.err, "context deadline exceeded") && !strings.Contains(one.err, "is busy"):
			other.list = append(other.list, one)
		}
	}
	calls, failed := users.count()
	report(t, row{proof: t.Name() + " through the API server", calls: calls, failed: failed, p50: users.percentile(.5), p99: users.percentile(.99), note: fmt.Sprintf("%d succeeded after retries", succeeded)})
	if text := other.failures(o.start); text != "" {
		t.Errorf("calls through the API server that should not have failed, %d of them began less than 5 s before the end:\n%s", late, text)
	}
}
