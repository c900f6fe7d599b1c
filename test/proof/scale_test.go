// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"math"
	"sync"
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

// TestAPIServersScale compares the simulation of hack/scale with three API servers and six replicas: the connections that
// are opened and open must differ by less than 20 %. The requests come at random times, and connections are opened in turn.
func TestAPIServersScale(t *testing.T) {
	const (
		rate        = 45 // creates per second, with two calls each
		tolerate    = .2
		simulations = 20
	)
	usePlane(t, several(t))
	s := newService(t, 0)
	s.settings = Settings{Server: Admitkit, Pause: 50 * time.Millisecond, ShutdownDelay: -1, MaxConnectionAge: 3 * time.Second}
	s.configure(t, s.useStatic(t))
	for range 6 {
		s.start(t)
	}
	s.awaitEnforced(t)
	l := startRandomLoad(t, s.namespace, rate)
	l.awaitCalls(t, 10*rate)
	openedBefore, _ := s.balancer.count()
	start, samples, openSum := time.Now(), 0, 0
	for time.Since(start) < scale(40*time.Second, 5*time.Minute) {
		l.awaitCalls(t, 1)
		_, open := s.balancer.count()
		samples, openSum = samples+1, openSum+open
	}
	took := time.Since(start)
	openedAfter, _ := s.balancer.count()
	l.end()
	made, failed := l.count()
	if failed > 0 {
		t.Errorf("failed calls:\n%s", l.failures(l.start))
	}
	opened, open := 0.0, 0.0
	for seed := range uint64(simulations) {
		r := model.Simulate(model.Settings{
			APIServers: len(plane.servers), Hooks: 2, Replicas: len(s.replicas), Rate: rate, Call: s.balancer.callTime(), Fixed: true,
			Handshake: 5 * time.Millisecond, Balance: model.InTurn, MaxConnectionAge: s.settings.MaxConnectionAge,
			Warmup: 10 * time.Second, Count: took, Seed: seed,
		})
		opened += float64(r.Connections) / simulations
		for _, n := range r.Open {
			open += n / simulations
		}
	}
	note := fmt.Sprintf("a call needs %s; ", s.balancer.callTime().Round(time.Millisecond))
	for _, c := range []struct {
		name          string
		is, simulated float64
	}{
		{"connections opened", float64(openedAfter - openedBefore), opened},
		{"open connections", float64(openSum) / float64(samples), open},
	} {
		note += fmt.Sprintf("%s: %.1f, simulated %.1f; ", c.name, c.is, c.simulated)
		if math.Abs(c.simulated/c.is-1) > tolerate {
			t.Errorf("%s: %.1f, but %.1f in the simulation", c.name, c.is, c.simulated)
		}
	}
	report(t, row{calls: made, failed: failed, p50: l.percentile(.5), p99: l.percentile(.99), note: note})
}

// startRandomLoad creates ConfigMaps at random times, rate per second on average, at random API servers.
func startRandomLoad(t *testing.T, namespace string, rate float64) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &load{start: time.Now(), stop: stop, stopped: make(chan struct{})}
	random, servers := newRandom("load of "+t.Name()), plane.clients
	go func() {
		defer close(l.stopped)
		var calls sync.WaitGroup
		defer calls.Wait()
		due := l.start
		next := time.NewTimer(0)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-next.C:
				client := servers[random.IntN(len(servers))]
				calls.Go(func() { l.add(at, createWith(context.WithoutCancel(ctx), client, namespace, nil)) })
			}
			due = due.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
			next.Reset(time.Until(due))
		}
	}()
	t.Cleanup(l.end)
	return l
}
