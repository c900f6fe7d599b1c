// SPDX-License-Identifier: Apache-2.0

// Package ratelog limits how often an error is logged, so that a client that provokes errors cannot fill the
// log.
package ratelog

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Interval is the minimum time between two errors of one Logger.
const Interval = time.Minute

// A Logger logs one kind of error at most once per Interval. The zero value is ready to use. It is
// safe for concurrent use.
type Logger struct {
	mu      sync.Mutex
	last    time.Time
	skipped int // errors since last
}

// Error logs err as an error at most once per Interval, and otherwise at V(1).
func (l *Logger) Error(log logr.Logger, err error, message string, values ...any) {
	skipped, due := l.due(time.Now())
	if due {
		log.Error(err, message+"; further errors of this kind within a minute are logged at V(1)", append(values, "moreBefore", skipped)...)
		return
	}
	log.V(1).Info(message, append(values, "reason", err.Error())...)
}

// due reports whether to log an error now, and how many were skipped since the last one.
func (l *Logger) due(now time.Time) (skipped int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < Interval {
		l.skipped++
		return 0, false
	}
	skipped, l.last, l.skipped = l.skipped, now, 0
	return skipped, true
}
