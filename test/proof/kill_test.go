// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// TestKillFailsOnlyExposedCalls runs three replicas under load and kills one at a time with SIGKILL, without
// draining it. Only exposed calls may fail. There are three kinds of exposed calls:
//
//   - calls in flight on the killed replica
//   - calls that the API server sent on an idle connection to it, before it saw that the connection had ended
//   - calls for which the balancer opened a connection to it, before the balancer noticed the kill
func TestKillFailsOnlyExposedCalls(t *testing.T) {
	rows := []struct {
		name    string
		removed bool
	}{
		{"the balancer knows at once", true},
		{"the balancer learns by probes", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := killable(t, 3)
			k := kill(t, s, scale(5, 50), row.removed)
			if k.exposed.inFlight == 0 {
				t.Error("no call was in flight on a victim, so the test proves nothing")
			}
			if row.removed && k.exposed.refused > 0 {
				t.Errorf("%d connections were opened to removed endpoints", k.exposed.refused)
			}
			if k.failed > k.exposed.total() {
				t.Errorf("%d calls failed, but only %d were exposed: %+v\n%s", k.failed, k.exposed.total(), k.exposed, k.failures)
			}
		})
	}
}

// TestKillOfTheOnlyReplicaFailsOtherCalls shows that TestKillFailsOnlyExposedCalls can fail. It kills the only replica,
// so calls must fail that are not exposed.
func TestKillOfTheOnlyReplicaFailsOtherCalls(t *testing.T) {
	if k := kill(t, killable(t, 1), 1, true); k.failed <= k.exposed.total() {
		t.Errorf("%d calls failed, want more than %d: %+v\n%s", k.failed, k.exposed.total(), k.exposed, k.failures)
	} else {
		t.Logf("as expected, %d calls failed, and only %d were exposed:\n%s", k.failed, k.exposed.total(), k.failures)
	}
}

// killable returns a service with replicas whose calls take 100 ms.
func killable(t *testing.T, replicas int) *service {
	t.Helper()
	s := newService(t, 200*time.Millisecond)
	s.settings = Settings{Server: Admitkit, Pause: 100 * time.Millisecond} // so that calls are in flight
	s.configure(t, s.useStatic(t))
	for range replicas {
		s.start(t)
	}
	s.awaitEnforced(t)
	return s
}

// A killing is the result of the function kill: which calls were exposed, and which failed.
type killing struct {
	exposed  exposure
	failed   int
	failures string
}

// kill kills replicas under load, one at a time, and as many as count says. If removed is true, the balancer knows of
// each kill at once.
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

// busiest waits for a call in flight and returns the replica with the most such calls. A new replica may have
// none for a while, because the API server keeps its connections.
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
