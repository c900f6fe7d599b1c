// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// typical are the settings of a webhook with many calls.
var typical = Settings{
	APIServers: 3, Replicas: 6, Rate: 300, Call: 10 * time.Millisecond, Handshake: 2 * time.Millisecond,
	MaxConnectionAge: 30 * time.Second, Warmup: time.Minute, Count: 2 * time.Minute, Seed: 7,
}

func with(change func(*Settings)) Settings {
	s := typical
	change(&s)
	return s
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}

// TestCallsAreConserved compares the number of calls, and of calls in progress (Little's law), with the rate.
func TestCallsAreConserved(t *testing.T) {
	for name, s := range map[string]Settings{
		"at random":   typical,
		"in turn":     with(func(s *Settings) { s.Balance = InTurn }),
		"per call":    with(func(s *Settings) { s.Balance = PerCall }),
		"two hooks":   with(func(s *Settings) { s.Hooks = 2 }),
		"a rollout":   with(func(s *Settings) { s.Replace = 5 * time.Second }),
		"fixed times": with(func(s *Settings) { s.Fixed = true }),
		"no keep-alive": with(func(s *Settings) {
			s.MaxConnectionAge = time.Nanosecond
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r := Simulate(s)
			want := s.Rate * s.Count.Seconds() * float64(max(s.Hooks, 1))
			if got := float64(sum(r.Calls)); math.Abs(got/want-1) > .03 {
				t.Errorf("%.0f calls, want about %.0f", got, want)
			}
			open := 0.0
			for _, n := range r.Open {
				open += n
			}
			if least := .97 * s.Rate * s.Call.Seconds() * float64(max(s.Hooks, 1)); open < least {
				t.Errorf("%.2f connections are open on average, but %.2f calls are in progress", open, least)
			}
			if name == "no keep-alive" && math.Abs(float64(r.Connections)/want-1) > .03 {
				t.Errorf("%d connections for %.0f calls", r.Connections, want)
			}
			if again := Simulate(s); !reflect.DeepEqual(r, again) {
				t.Errorf("a second simulation differs: %+v, %+v", r, again)
			}
		})
	}
}

// TestWhatSpreadsCalls checks what makes replicas share the calls evenly, and what does not.
func TestWhatSpreadsCalls(t *testing.T) {
	rollout := func(age time.Duration) Settings {
		return with(func(s *Settings) {
			s.Replace, s.Settle, s.MaxConnectionAge = 5*time.Second, 2*time.Minute, age
		})
	}
	perCall, inTurn := with(func(s *Settings) { s.Balance = PerCall }), with(func(s *Settings) { s.Balance, s.MaxConnectionAge = InTurn, time.Second })
	busiest := func(s Settings) float64 {
		total := 0.0
		for seed := range uint64(10) {
			s.Seed = seed
			total += Simulate(s).Busiest()
		}
		return total / 10
	}
	for _, tt := range []struct {
		name        string
		better      Settings
		worse       Settings
		least, most float64 // of better
	}{
		{"a replica for each call", perCall, typical, 1, 1.1},
		{"old connections close", rollout(10 * time.Second), rollout(0), 1, 2},
		{"connections in turn", inTurn, with(func(s *Settings) { s.MaxConnectionAge = time.Second }), 1, 1.3},
	} {
		good, bad := busiest(tt.better), busiest(tt.worse)
		if good < tt.least || good > tt.most || good >= bad {
			t.Errorf("%s: the busiest replica has %.2f times the mean, and %.2f times without", tt.name, good, bad)
		}
	}
}

// TestIdleConnectionsEnd checks that idle connections are closed after their timeout.
func TestIdleConnectionsEnd(t *testing.T) {
	rare := with(func(s *Settings) { s.Rate, s.MaxConnectionAge, s.Count = .01, 0, 10*time.Hour })
	r := Simulate(rare)
	open := 0.0
	for _, n := range r.Open {
		open += n
	}
	// A connection serves about one call, and is then idle for 90 seconds, or less if another call comes.
	if most := rare.Rate * (idleTimeout + rare.Call).Seconds(); open > 1.1*most || open < most/3 {
		t.Errorf("%.2f connections are open, at most %.2f can be", open, most)
	}
}

// TestWrites checks the rates of a cluster that are known from its size.
func TestWrites(t *testing.T) {
	c := Cluster{Nodes: 5000, Pods: 86_400, PodLifetime: 24 * time.Hour, PodStarts: 50}
	got := map[string]Writes{}
	for _, w := range c.Writes() {
		got[w.Operation+" "+w.Resource] = w
	}
	refreshed := 86_400. / 2886
	for name, want := range map[string][2]float64{
		"CREATE serviceaccounts/token": {1 + refreshed, 50 + refreshed},
		"UPDATE leases":                {500, 500}, "CREATE pods": {1, 50}, "CREATE pods/binding": {1, 50}, "DELETE pods": {2, 100},
	} {
		if w := got[name]; w.Mean != want[0] || w.Peak != want[1] {
			t.Errorf("%s: %v and %v, want %v", name, w.Mean, w.Peak, want)
		}
	}
}
