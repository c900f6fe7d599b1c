// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/admitkit/admitkit/hack/scale/model"
)

// usePlane makes a control plane the shared one until the end of the test.
func usePlane(t *testing.T, p *controlPlane) {
	before, client := plane, clients
	plane, clients = p, p.clients[0]
	t.Cleanup(func() { plane, clients = before, client })
}

// TestAPIServersScale compares the simulation of hack/scale with three API servers and six replicas: the connections that are
// opened and open, and the calls of the busiest replica must differ by less than 20 %.
func TestAPIServersScale(t *testing.T) {
	const (
		rate     = 60 // creates per second, with two calls each
		pause    = 50 * time.Millisecond
		tolerate = .2
	)
	usePlane(t, several(t))
	s := newService(t, 0)
	s.settings = Settings{Server: Admitkit, Pause: pause, ShutdownDelay: -1, MaxConnectionAge: 3 * time.Second}
	s.configure(t, s.useStatic(t))
	for range 6 {
		s.start(t)
	}
	s.awaitEnforced(t)
	l := startLoad(t, rate, create(s.namespace, nil))
	l.awaitCalls(t, 10*rate)
	calls := s.decisions(t)
	openedBefore, _ := s.balancer.count()
	start, samples, openSum := time.Now(), 0, 0
	for time.Since(start) < scale(20*time.Second, 5*time.Minute) {
		l.awaitCalls(t, 1)
		_, open := s.balancer.count()
		samples, openSum = samples+1, openSum+open
	}
	took := time.Since(start)
	openedAfter, _ := s.balancer.count()
	measured := &model.Result{Connections: openedAfter - openedBefore}
	for i, n := range s.decisions(t) {
		measured.Calls = append(measured.Calls, n-calls[i])
	}
	l.end()
	made, failed := l.count()
	if failed > 0 {
		t.Errorf("failed calls:\n%s", l.failures(l.start))
	}
	simulated := model.Simulate(model.Settings{
		APIServers: len(plane.servers), Hooks: 2, Replicas: len(s.replicas), Rate: rate, Steady: true, Call: pause, Fixed: true,
		Handshake: 5 * time.Millisecond, Balance: model.InTurn, MaxConnectionAge: s.settings.MaxConnectionAge,
		Warmup: 10 * time.Second, Count: took, Seed: 1,
	})
	open := 0.0
	for _, n := range simulated.Open {
		open += n
	}
	note := ""
	for _, c := range []struct {
		name        string
		is, modeled float64
	}{
		{"connections opened", float64(measured.Connections), float64(simulated.Connections)},
		{"open connections", float64(openSum) / float64(samples), open},
		{"calls of the busiest replica, as a multiple of the mean", measured.Busiest(), simulated.Busiest()},
	} {
		note += fmt.Sprintf("%s: %.2f, simulated %.2f; ", c.name, c.is, c.modeled)
		if math.Abs(c.modeled/c.is-1) > tolerate {
			t.Errorf("%s: %.2f, but %.2f in the simulation", c.name, c.is, c.modeled)
		}
	}
	report(t, row{calls: made, failed: failed, p50: l.percentile(.5), p99: l.percentile(.99), note: note})
}
