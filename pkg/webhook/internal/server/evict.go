// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A connection without a call may stay idle for newConnIdle before it can be evicted. A client should have made its
// call by then. With a longer time, new connections would fill the accept queue of the operating system, which then
// refuses more. If there are more than maxNewConns idle connections without a call, the oldest is evicted at once.
// Requests other than calls, such as probes, do not extend the time.
//
// A connection can be busy without a call: its client does not read, or does not send the rest of a body. Such
// a connection gets the same time, or discardTime while the rest of a body is read.
const (
	newConnIdle = time.Second
	discardTime = 10 * time.Second // a call that waits for the rest of a body is too late by then
	shortBreak  = newConnIdle / 2
	maxNewConns = 500
	scanPause   = newConnIdle / 10
)

// untilChange is how long to wait if only a change of a connection can help. Such a change ends the wait early.
const untilChange = time.Hour

// victim returns the connection to close for a new one, or how long to wait for one. It first chooses connections
// without a call, so that a client with many connections cannot crowd out the API server. Then come connections that
// are busy without a call, and then slow bodies. Idle connections that had calls come last, and only while the idle
// connections without a call are less than half of the limit. mu must be locked.
func (all *Connections) victim() (*Connection, time.Duration) {
	wait := untilChange
	for _, list := range []int{probeConnections, newConnections} {
		if oldest := all.oldest(list); oldest != nil {
			remaining := newConnIdle - time.Since(oldest.opened)
			if remaining <= 0 || all.waiting > maxNewConns {
				return oldest, 0
			}
			wait = min(wait, remaining)
		}
	}
	stalled, remaining := all.stalled()
	if stalled != nil {
		return stalled, 0
	}
	wait = min(wait, remaining)
	if all.evict() {
		return nil, reply.DiscardUntimely
	}
	if all.waiting < max(1, all.max/2) {
		if c := all.oldest(callConnections); c != nil {
			return c, 0
		}
	}
	return nil, wait
}

// stalled returns a connection that is busy without a call for too long, or how long to wait before
// the next scan of all connections.
func (all *Connections) stalled() (*Connection, time.Duration) {
	if since := time.Since(all.scanned); since < scanPause {
		return nil, scanPause - since
	}
	wait := untilChange
	for c := range all.open {
		if !c.state.busy || c.closing.Load() || c.calls.Load() > 0 {
			continue
		}
		limit := newConnIdle
		if c.discards.Load() {
			limit = discardTime
		}
		remaining := limit - min(time.Since(c.state.busySince), time.Since(c.opened)-time.Duration(c.lastCall.Load()))
		if remaining <= 0 {
			return c, 0
		}
		wait = min(wait, remaining)
	}
	all.scanned = time.Now()
	return nil, wait
}
