// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// stats observes the hooks, counts the outcomes, and serves the state of the replica.
type stats struct {
	source certs.Source

	mu       sync.Mutex
	outcomes map[webhook.Outcome]int
}

// Begin implements webhook.Observer.
func (s *stats) Begin(ctx context.Context, _ *webhook.Hook, _ *http.Request) (context.Context, func(*webhook.Observation)) {
	return ctx, func(c *webhook.Observation) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.outcomes == nil {
			s.outcomes = map[webhook.Outcome]int{}
		}
		s.outcomes[c.Outcome]++
	}
}

// serve serves the state until the process ends, even during a drain.
func (s *stats) serve() (addr string, err error) {
	listener, err := listen()
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(StatsPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("gc") {
			debug.FreeOSMemory()
		}
		_ = json.NewEncoder(w).Encode(s.now())
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), nil
}

func (s *stats) now() Stats {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	status := s.source.Status()
	now := Stats{
		Goroutines: runtime.NumGoroutine(), HeapBytes: memory.HeapAlloc, Outcomes: map[webhook.Outcome]int{},
		Phase: string(status.Phase), Rotations: status.Rotations, Renewals: status.Renewals,
		Trusted: status.Trusted, NotAfter: status.NotAfter, CANotAfter: status.CANotAfter,
	}
	if status.Err != nil {
		now.Err = status.Err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for outcome, n := range s.outcomes {
		now.Outcomes[outcome] = n
	}
	return now
}
