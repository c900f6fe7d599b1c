// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"strings"
	"testing"
	"time"
)

const restartRate = 50 // creates a second, with two calls each

// restarts runs three replicas and restarts them one after the other under load. It returns the load, which
// has ended.
func restarts(t *testing.T, count int, maxLag time.Duration, settings Settings) *load {
	t.Helper()
	s := newService(t, maxLag)
	s.settings = settings
	s.settings.Pause = 100 * time.Millisecond // so that calls are in flight at each restart
	s.configure(t, s.useStatic(t))
	for range 3 {
		s.start(t)
	}
	s.awaitEnforced(t)
	l := startLoad(t, restartRate, create(s.namespace, nil))
	l.awaitCalls(t, restartRate/2)
	for i := range count {
		s.restart(t, s.replicas[i%len(s.replicas)])
		if calls, failed := l.count(); soak {
			progress("%s: restart %d of %d, %d calls, %d failed", t.Name(), i+1, count, calls, failed)
		}
	}
	l.awaitCalls(t, restartRate/2)
	l.end()
	calls, failed := l.count()
	report(t, row{calls: calls, failed: failed, restart: count, p50: l.percentile(.5), p99: l.percentile(.99)})
	return l
}

// TestRollingRestartFailsNoCall restarts replicas under load. In one case the balancer learns of each restart at once,
// and in the other only after a delay. No call may fail.
func TestRollingRestartFailsNoCall(t *testing.T) {
	rows := []struct {
		name   string
		maxLag time.Duration
	}{
		{"the balancer learns at once", 0},
		{"the balancer learns late", 700 * time.Millisecond},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			l := restarts(t, scale(3, 20), row.maxLag, Settings{
				Server: Admitkit, ShutdownDelay: scale(2*time.Second, 4*time.Second), DrainTimeout: 20 * time.Second,
			})
			if _, failed := l.count(); failed != 0 {
				t.Errorf("failed calls:\n%s", l.failures(l.start))
			}
		})
	}
}

// TestRollingRestartOfOtherServersFailsCalls shows that TestRollingRestartFailsNoCall can fail. It restarts other
// webhook servers, which must fail calls.
func TestRollingRestartOfOtherServersFailsCalls(t *testing.T) {
	rows := []struct {
		name     string
		settings Settings
		want     string // part of the text of at least one failure
	}{
		{"a server that closes its connections", Settings{Server: Abrupt}, "EOF"},
		{"the server of controller-runtime", Settings{Server: ControllerRuntime}, "context canceled"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			l := restarts(t, 2, 700*time.Millisecond, row.settings)
			if text := l.failures(l.start); !strings.Contains(text, row.want) {
				t.Errorf("no call failed with %q. The failures are:\n%s", row.want, text)
			} else {
				t.Logf("as expected:\n%s", text)
			}
		})
	}
}
