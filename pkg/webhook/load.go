// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Load is what a server holds at a moment, and how much that may be: see [Options]. Where there
// is no limit, it is the largest number of its type. Package metrics shows it.
type Load struct {
	// Calls are in flight. A handler that was left behind at its deadline counts until it
	// returns, with the body of its call.
	Calls, MaxCalls int
	// Waiting are the calls in flight without an answer: the others were left behind.
	Waiting int
	// Bytes of memory hold the bodies of these calls.
	Bytes, MaxBytes int64
	// Connections are open, with a call or without.
	Connections, MaxConnections int
}

// Load returns what the server holds now. It may be called at any time, and often.
func (s *Server) Load() Load {
	o := &s.opts
	l := Load{MaxCalls: o.MaxInFlight, MaxBytes: o.MaxInFlightBytes, MaxConnections: o.MaxConnections}
	g := s.gate.Load()
	if g == nil {
		return l
	}
	l.Calls, l.Bytes = int(g.calls.Load()), g.bytes.Load()
	l.Waiting = max(0, min(int(g.waiting.Load()-g.ousted.Load()), l.Calls)) // read later, it may be more
	l.Connections = g.connections.count()
	return l
}

func (all *connections) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.open)
}

// limitValues are for the log, as text: a number of bytes or nanoseconds is hard to read.
func (o *Options) limitValues() []any {
	return []any{
		"maxInFlight", countText(o.MaxInFlight),
		"maxInFlightBytes", bytesText(o.MaxInFlightBytes),
		"maxBodyBytes", bytesText(o.bodyLimit(nil)),
		"maxConnections", countText(o.MaxConnections),
		"maxConnectionAge", durationText(o.MaxConnectionAge),
		"shutdownDelay", durationText(o.ShutdownDelay),
		"drainTimeout", durationText(o.DrainTimeout),
	}
}

const unlimited = "none"

func countText(n int) string {
	if n == math.MaxInt {
		return unlimited
	}
	return strconv.Itoa(n)
}

func bytesText(n int64) string {
	if n == math.MaxInt64 {
		return unlimited
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}

func durationText(d time.Duration) string {
	if d == math.MaxInt64 {
		return unlimited
	}
	return d.String()
}
