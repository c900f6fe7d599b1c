// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Load is the current use of a server and its limits: see [Options]. Without a limit, the field is
// the largest number of its type. Package metrics exports it.
type Load struct {
	// Calls is the number of calls in flight. A handler that was left behind at its deadline
	// counts until it returns.
	Calls, MaxCalls int
	// Waiting is the number of calls in flight without an answer.
	Waiting int
	// Bytes is the memory for the bodies of these calls.
	Bytes, MaxBytes int64
	// Connections is the number of open connections.
	Connections, MaxConnections int
}

// Load returns the current load. It is cheap and may be called at any time.
func (s *Server) Load() Load {
	o := &s.opts
	l := Load{MaxCalls: o.MaxInFlight, MaxBytes: o.MaxInFlightBytes, MaxConnections: o.MaxConnections, Connections: s.connections.Count()}
	l.Calls, l.Bytes, l.Waiting = s.gate.Calls()
	return l
}

// limitValues returns the limits for the log, as text with units.
func (o *Options) limitValues() []any {
	return []any{
		"maxInFlight", countText(o.MaxInFlight),
		"maxInFlightBytes", bytesText(o.MaxInFlightBytes),
		"maxBodyBytes", bytesText(o.MaxBodyBytes),
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
