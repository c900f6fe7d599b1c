// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestOverloadOfConnectionsFailsNoCall runs 40 clients against a limit of 20 connections. Each client keeps its
// connection. The server may close a connection while a client sends a call, and the client then repeats the call. In
// the end no call may fail.
func TestOverloadOfConnectionsFailsNoCall(t *testing.T) {
	s := newService(t, 0)
	s.settings = Settings{Server: Admitkit, Pause: time.Millisecond, ShutdownDelay: -1, MaxConnections: 20, MaxInFlight: 100}
	bundle := s.useStatic(t)
	s.start(t)
	all := &samples{}
	start := time.Now()
	shed := int64(0)
	ctx, cancel := context.WithTimeout(t.Context(), scale(5*time.Second, time.Minute))
	defer cancel()
	var group sync.WaitGroup
	var callers []*caller
	for i := range 40 {
		c := newCaller(t, s.replicas[0].hello.Hooks, s.namespace, s.host, bundle, 1<<10)
		c.calls = all
		callers = append(callers, c)
		random := newRandom("client " + string(rune('a'+i)))
		group.Go(func() {
			pause := time.NewTimer(0)
			defer pause.Stop()
			for {
				select {
				case <-pause.C:
				case <-ctx.Done():
					return
				}
				_ = c.call(context.WithoutCancel(ctx), 10*time.Second)
				pause.Reset(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			}
		})
	}
	group.Wait()
	for _, c := range callers {
		shed += c.shed.Load()
	}
	calls, failed := all.count()
	report(t, row{calls: calls, failed: failed, shed: int(shed), retried: int(shed), p50: all.percentile(.5), p99: all.percentile(.99)})
	if failed > 0 {
		t.Errorf("failed calls:\n%s", all.failures(start))
	}
}
