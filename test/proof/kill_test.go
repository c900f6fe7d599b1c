// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/test/proof/replica/control"
)

// TestKill kills one of three replicas after the other with SIGKILL, under load and without
// draining them. A call may fail only if the kill could reach it: it was in flight on the victim at
// that moment, it was sent on an idle connection whose end the API server had not yet seen, or the
// balancer had not yet noticed the death and opened a connection to the victim for it.
func TestKill(t *testing.T) {
	rows := []struct {
		name    string
		removed bool
	}{
		{"known at once", true},
		{"known by probes", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := killable(t, 3)
			k := kill(t, s, scale(5, 50), row.removed)
			if k.exposed.inFlight == 0 {
				t.Error("no call was in flight on a victim: nothing is proven")
			}
			if row.removed && k.exposed.refused > 0 {
				t.Errorf("%d connections were opened to removed endpoints", k.exposed.refused)
			}
			if k.failed > k.exposed.total() {
				t.Errorf("%d calls failed, and the kills can explain %d: %+v\n%s", k.failed, k.exposed.total(), k.exposed, k.failures)
			}
		})
	}
}

// TestKillCanFail shows that calls fail beyond the bound of TestKill if no replica survives.
func TestKillCanFail(t *testing.T) {
	if k := kill(t, killable(t, 1), 1, true); k.failed <= k.exposed.total() {
		t.Errorf("%d calls failed, want more than %d: %+v\n%s", k.failed, k.exposed.total(), k.exposed, k.failures)
	} else {
		t.Logf("as expected, %d calls failed, and the kill can explain %d:\n%s", k.failed, k.exposed.total(), k.failures)
	}
}

func killable(t *testing.T, replicas int) *service {
	t.Helper()
	s := newService(t, 200*time.Millisecond)
	s.settings = control.Settings{Server: control.Admitkit, Pause: 100 * time.Millisecond} // so that calls are in flight
	s.configure(t, s.useStatic(t))
	for range replicas {
		s.start(t)
	}
	s.awaitEnforced(t)
	return s
}

// A killing is the result of some kills under load.
type killing struct {
	exposed  exposure
	failed   int
	failures string
}

func kill(t *testing.T, s *service, count int, removed bool) killing {
	t.Helper()
	l := startLoad(t, restartRate, create(s.namespace, nil))
	l.awaitCalls(t, restartRate/2)
	var k killing
	for range count {
		victim := s.busiest(t)
		s.balancer.kill(victim.endpoint, removed)
		victim.await(t)
		if removed {
			l.awaitCalls(t, restartRate) // with the survivors only
		} else {
			s.balancer.await(t, "the balancer has noticed the death", func() bool { return !victim.endpoint.ready })
		}
		s.balancer.await(t, "the connections of the victim are closed", func() bool { return len(victim.endpoint.connections) == 0 })
		e := s.balancer.exposure(victim.endpoint)
		k.exposed.inFlight += e.inFlight
		k.exposed.late += e.late
		k.exposed.refused += e.refused
		s.balancer.remove(victim.endpoint)
		s.fill(t, victim)
		l.awaitCalls(t, restartRate/2)
	}
	l.end()
	var calls int
	calls, k.failed = l.count()
	k.failures = l.failures(l.start)
	report(t, row{
		calls: calls, failed: k.failed, restart: count, p50: l.percentile(.5), p99: l.percentile(.99),
		note: fmt.Sprintf("SIGKILL without drain; %d calls in flight on the victims, %d sent late, %d refused", k.exposed.inFlight, k.exposed.late, k.exposed.refused),
	})
	return k
}

// busiest returns the replica with the most calls in flight, at least one. Connections are kept alive, so a
// new replica may have none for a while.
func (s *service) busiest(t *testing.T) *replica {
	t.Helper()
	var found *replica
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		s.balancer.mu.Lock()
		defer s.balancer.mu.Unlock()
		most := 0
		for _, r := range s.replicas {
			busy := 0
			for c := range r.endpoint.connections {
				if !c.isIdle() {
					busy++
				}
			}
			if busy > most {
				found, most = r, busy
			}
		}
		return found != nil, nil
	})
	if err != nil {
		t.Fatal("no replica has a call in flight")
	}
	return found
}
