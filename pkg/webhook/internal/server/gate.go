// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"sync/atomic"
)

// A Gate counts the calls of a server and the memory of their bodies, and refuses calls over the
// limits.
type Gate struct {
	maxCalls, maxBytes int64

	stage    atomic.Int32
	calls    atomic.Int64 // in flight, or answered while the handler still runs
	waiting  atomic.Int64 // in flight without an answer
	evicted  atomic.Int64 // calls that are counted in waiting, but no longer in calls
	bytes    atomic.Int64 // of memory for bodies
	bodies   bodies
	answered chan struct{} // wakes the drain when waiting becomes zero
}

// The stages of a server.
const (
	starting int32 = iota
	serving
	leaving  // calls are still served, and every answer closes its connection
	stopping // new calls are refused
)

// NewGate returns a gate that limits the calls in flight and the memory of their bodies, in bytes.
func NewGate(maxCalls int, maxBytes int64) *Gate {
	return &Gate{maxCalls: int64(maxCalls), maxBytes: maxBytes, answered: make(chan struct{}, 1)}
}

// Serve records that the server now serves calls.
func (g *Gate) Serve() { g.stage.Store(serving) }

// AnnounceStop makes every answer close its connection.
func (g *Gate) AnnounceStop() { g.stage.Store(leaving) }

// Stopping reports whether AnnounceStop was called or the drain has begun.
func (g *Gate) Stopping() bool { return g.stage.Load() >= leaving }

// Calls returns the calls in flight, the memory of their bodies in bytes, and how many of the calls
// have no answer yet.
func (g *Gate) Calls() (calls int, bytes int64, waiting int) {
	calls, bytes = int(g.calls.Load()), g.bytes.Load()
	return calls, bytes, max(0, min(int(g.waiting.Load()-g.evicted.Load()), calls)) // waiting is read after calls, so it may be larger
}

// Waiting returns how many calls have no answer yet, evicted calls included.
func (g *Gate) Waiting() int64 { return g.waiting.Load() }

// An Overload is the error of a call for which the server has no room.
type Overload struct{ text string }

func (e *Overload) Error() string { return e.text }

// enter counts a call. It returns an Overload if the server has no room for the call, or ErrStopping. It counts the
// call before it reads the stage, and the drain sets the stage before it reads the count. So either the call finds that
// the server is stopping, or the drain waits for the call.
func (g *Gate) enter() error {
	g.waiting.Add(1)
	switch {
	case g.calls.Add(1) > g.maxCalls && !g.EvictSlowBody():
		return &Overload{fmt.Sprintf("%d calls are in flight, which is the limit", g.maxCalls)}
	case g.stage.Load() == stopping:
		return ErrStopping
	}
	return nil
}

// reserve counts n more bytes of memory for a body. own is the memory of that body, including n. A single body
// may be as large as its hook allows, even over the limit.
func (g *Gate) reserve(n, own int64) error {
	if all := g.bytes.Add(n); all > g.maxBytes && all > own && !g.evict(n) {
		return &Overload{fmt.Sprintf("the bodies of the calls in flight have %d bytes, which is the limit", g.maxBytes)}
	}
	return nil
}

// EvictSlowBody evicts a slow body to make room for another call or connection. It reports whether
// there was one.
func (g *Gate) EvictSlowBody() bool { return g.evict(0) }

// evict evicts slow bodies that together hold this many bytes, or one slow body if bytes is zero.
// Their calls are no longer counted: see Place.Drop.
func (g *Gate) evict(bytes int64) bool {
	evicted, freed := g.bodies.evict(bytes)
	if evicted > 0 {
		g.calls.Add(-evicted)
		g.evicted.Add(evicted)
		g.bytes.Add(-freed)
	}
	return evicted > 0
}

// wasAnswered counts an answer, and wakes the drain after the last one.
func (g *Gate) wasAnswered() {
	if g.waiting.Add(-1) == 0 && g.stage.Load() == stopping {
		wake(g.answered)
	}
}

// wake wakes the goroutine that waits on a channel with room for one value.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
