// SPDX-License-Identifier: Apache-2.0

package record

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the numbers of a recorder since it was started. Package metrics exports them.
type Stats struct {
	// Calls is the number of calls that the recorder has seen. It is the sum of the numbers below and of the calls that
	// are in the queue or not yet on the disk.
	Calls int64
	// Recorded is the number of calls on the disk.
	Recorded int64
	// NotSampled is the number of calls that were not chosen.
	NotSampled int64
	// QueueFull is the number of calls that were dropped because the disk or the CPU is too slow.
	QueueFull int64
	// DiskFailed is the number of calls that were dropped because of an error of the disk.
	DiskFailed int64
	// TooLarge is the number of calls that were dropped because of their size.
	TooLarge int64
	// Unreadable is the number of calls that were dropped because they are not JSON, so that secrets in them cannot be
	// found.
	Unreadable int64
	// WrittenBytes is the number of bytes that were written to files.
	WrittenBytes int64
	// QueuedBytes is the memory of the calls in the queue.
	QueuedBytes int64
}

// dropped returns the number of calls that were chosen and not recorded.
func (s Stats) dropped() int64 { return s.QueueFull + s.DiskFailed + s.TooLarge + s.Unreadable }

type counts struct {
	calls, recorded, notSampled, queueFull, diskFailed, tooLarge, unreadable, writtenBytes atomic.Int64

	mu      sync.Mutex
	lastErr error
}

// fail stores the last error.
func (c *counts) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastErr = err
}

func (c *counts) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

// Stats returns the current numbers. It is safe for concurrent use, also after Close.
func (r *Recorder) Stats() Stats {
	c := &r.counts
	return Stats{
		Calls: c.calls.Load(), Recorded: c.recorded.Load(), NotSampled: c.notSampled.Load(), QueueFull: c.queueFull.Load(),
		DiskFailed: c.diskFailed.Load(), TooLarge: c.tooLarge.Load(), Unreadable: c.unreadable.Load(),
		WrittenBytes: c.writtenBytes.Load(), QueuedBytes: r.queueBytes.Load(),
	}
}

// The intervals of messages about dropped calls.
const (
	checkInterval = time.Second
	logInterval   = time.Minute
)

// report logs dropped calls, at most once per logInterval. It has its own goroutine, because the one that writes may wait
// for the disk.
func (r *Recorder) report() {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var logged time.Time
	var known int64
	for {
		select {
		case <-r.done:
			return
		case now := <-tick.C:
			if s := r.Stats(); s.dropped() > known && now.Sub(logged) >= logInterval {
				known, logged = s.dropped(), now
				r.log.Error(r.counts.err(), "calls were not recorded", "recorded", s.Recorded, "queueFull", s.QueueFull,
					"diskFailed", s.DiskFailed, "tooLarge", s.TooLarge, "unreadable", s.Unreadable)
			}
		}
	}
}
