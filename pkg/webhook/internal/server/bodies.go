// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// The body of a call may arrive at any time before the call's deadline, because a network may be slow. A body is slow
// if it takes longer than slowAfter, plus one second for each slowRate bytes that have arrived. A slow body is
// evicted only if another call or connection needs its room. The evicted call is answered like one that found no
// slot, so the API server repeats it after a second. So clients that send a byte now and then do not block other
// calls.
const (
	slowAfter = 2 * time.Second
	slowRate  = 64 << 10 // bytes that give a body one more second
)

// bodies are the bodies that are being read, in the order in which reading began.
type bodies struct {
	mu   sync.Mutex
	root Reading // the root of a ring
}

// A Reading is a body that is being read.
type Reading struct {
	io.Reader
	arrived atomic.Int64 // bytes of the body
	memory  atomic.Int64 // bytes reserved for it

	// The following fields are guarded by bodies.mu until end is called.
	prev, next *Reading
	w          http.ResponseWriter
	began      time.Time
	freed      int64 // bytes of memory that were released by evict
	evicted    bool
}

func (r *Reading) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.arrived.Add(int64(n))
	return n, err
}

// begin adds r to the bodies being read.
func (b *bodies) begin(r *Reading, from io.Reader, w http.ResponseWriter) {
	r.Reader, r.w, r.began = from, w, time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root.next == nil {
		b.root.prev, b.root.next = &b.root, &b.root
	}
	r.prev, r.next = b.root.prev, &b.root
	r.prev.next, r.next.prev = r, r
}

// end removes r. It reports whether r was evicted and how much memory it still holds. r can then be
// used for another body.
func (b *bodies) end(r *Reading) (evicted bool, memory int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.unlink()
	evicted, memory = r.evicted, r.memory.Swap(0)-r.freed
	r.arrived.Store(0)
	r.Reader, r.w, r.freed, r.evicted = nil, nil, 0, false
	return evicted, memory
}

func (r *Reading) unlink() {
	if r.next != nil {
		r.prev.next, r.next.prev = r.next, r.prev
		r.prev, r.next = nil, nil
	}
}

// evict evicts slow bodies, the oldest first, until the evicted bodies together hold at least this many
// bytes. If bytes is zero, it evicts one. If all slow bodies together hold too little, it evicts none. It
// returns how many it evicted and the memory they held.
func (b *bodies) evict(bytes int64) (evicted, freed int64) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	slow := b.slow(now, bytes)
	for _, r := range slow {
		r.evicted, r.freed = true, r.memory.Load()
		freed += r.freed
		r.unlink()
		reply.SetReadDeadline(r.w, now.Add(-time.Second))
	}
	return int64(len(slow)), freed
}

// slow returns the bodies that evict must evict: the oldest slow bodies that together hold at least this many bytes. It
// returns none if all slow bodies together hold less. b.mu must be locked.
func (b *bodies) slow(now time.Time, bytes int64) []*Reading {
	var slow []*Reading
	for r := b.root.next; r != nil && r != &b.root && now.Sub(r.began) >= slowAfter; r = r.next {
		if now.Sub(r.began) < slowAfter+time.Duration(r.arrived.Load()/slowRate)*time.Second {
			continue
		}
		slow = append(slow, r)
		if bytes -= r.memory.Load(); bytes <= 0 {
			return slow
		}
	}
	return nil
}
