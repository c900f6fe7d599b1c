// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestRestartSpreadsLoad checks that new replicas get calls, although the API server reuses its connections. For this,
// the webhook server closes old connections.
func TestRestartSpreadsLoad(t *testing.T) {
	const rate = 30
	s := newService(t, 0)
	s.settings = Settings{
		Server: Admitkit, Pause: 50 * time.Millisecond, ShutdownDelay: -1, MaxConnectionAge: 500 * time.Millisecond,
	}
	s.configure(t, s.useStatic(t))
	s.start(t)
	s.awaitEnforced(t)
	l := startLoad(t, rate, create(s.namespace, nil))
	l.awaitCalls(t, rate)
	s.start(t)
	s.start(t)
	l.awaitCalls(t, rate) // a second, after which every connection has reached its maximum age
	before := s.decisions(t)
	l.awaitCalls(t, 2*rate)
	after := s.decisions(t)
	l.end()
	total := 0
	for i := range after {
		after[i] -= before[i]
		total += after[i]
	}
	for i, n := range after {
		if n < total/10 {
			t.Errorf("replica %d had %d of %d calls", i+1, n, total)
		}
	}
	calls, failed := l.count()
	report(t, row{calls: calls, failed: failed, p50: l.percentile(.5), p99: l.percentile(.99)})
	if failed > 0 {
		t.Errorf("failed calls:\n%s", l.failures(l.start))
	}
}

// decisions returns the number of calls that each replica has allowed or mutated.
func (s *service) decisions(t *testing.T) []int {
	t.Helper()
	var all []int
	for _, r := range s.replicas {
		stats, err := r.stats("")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stats.Outcomes[webhook.Allowed]+stats.Outcomes[webhook.Mutated])
	}
	return all
}
