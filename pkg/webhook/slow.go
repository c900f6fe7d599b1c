// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A body may take as long as its call, since a network may: the API server sends it in one go,
// but nobody knows when it arrives. As long as there is room that does no harm. When there is
// none, a call whose body is slow goes for the sake of another. It is told to come again as one
// that finds no room is, so an API server with a bad network loses a second, and who keeps calls
// busy with a byte now and then does not keep others from theirs.
const (
	slowAfter = 2 * time.Second
	slowRate  = 64 << 10 // for so many bytes that came there is a second more
)

// bodies are those of calls that are being read, in the order in which that began.
type bodies struct {
	mu   sync.Mutex
	root reading
}

// A reading is a body that is being read.
type reading struct {
	io.Reader
	came atomic.Int64

	// Of these, bodies.mu is the lock until the end.
	prev, next *reading
	w          http.ResponseWriter
	since      time.Time
	ousted     bool
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.came.Add(int64(n))
	return n, err
}

// begin has it be in the list.
func (b *bodies) begin(r *reading, w http.ResponseWriter) {
	r.w, r.since = w, time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root.next == nil {
		b.root.prev, b.root.next = &b.root, &b.root
	}
	r.prev, r.next = b.root.prev, &b.root
	r.prev.next, r.next.prev = r, r
}

// end reports whether it was ousted.
func (b *bodies) end(r *reading) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.unlink()
	r.w = nil
	return r.ousted
}

func (r *reading) unlink() {
	if r.next != nil {
		r.prev.next, r.next.prev = r.next, r.prev
		r.prev, r.next = nil, nil
	}
}

// oust ends the reading of the first body that is slow, if there is one.
func (b *bodies) oust() bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := b.root.next; r != nil && r != &b.root; r = r.next {
		if now.Sub(r.since) < slowAfter {
			return false // nor are those that follow
		}
		if now.Sub(r.since) >= slowAfter+time.Duration(r.came.Load()/slowRate)*time.Second {
			r.ousted = true
			r.unlink()
			setReadDeadline(r.w, now.Add(-time.Second))
			return true
		}
	}
	return false
}

// oustCall makes room for a call, which is counted, if there is one whose body is slow.
func (g *gate) oustCall() bool {
	ousted := g.bodies.oust()
	if ousted {
		g.calls.Add(-1) // see drop
	}
	return ousted
}

// tooSlow is the failure of a call that had to go for another.
func (x *exchange) tooSlow() error {
	return x.tooMuch("others wait, and the body takes too long to arrive")
}
