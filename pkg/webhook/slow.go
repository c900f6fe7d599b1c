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
	came, holds atomic.Int64 // bytes: of the body, of memory

	// Of these, bodies.mu is the lock until the end.
	prev, next *reading
	w          http.ResponseWriter
	since      time.Time
	given      int64 // bytes that others have
	ousted     bool
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.came.Add(int64(n))
	return n, err
}

// begin has it be in the list.
func (b *bodies) begin(r *reading, from io.Reader, w http.ResponseWriter) {
	r.Reader, r.w, r.since = from, w, time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root.next == nil {
		b.root.prev, b.root.next = &b.root, &b.root
	}
	r.prev, r.next = b.root.prev, &b.root
	r.prev.next, r.next.prev = r, r
}

// end reports whether it was ousted, and how much memory it still holds. From then on r can be used
// for another.
func (b *bodies) end(r *reading) (ousted bool, holds int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.unlink()
	ousted, holds = r.ousted, r.holds.Swap(0)-r.given
	r.came.Store(0)
	r.Reader, r.w, r.given, r.ousted = nil, nil, 0, false
	return ousted, holds
}

func (r *reading) unlink() {
	if r.next != nil {
		r.prev.next, r.next.prev = r.next, r.prev
		r.prev, r.next = nil, nil
	}
}

// oust ends the reading of the first body that is slow, or of as many as hold so much memory, if
// there are.
func (b *bodies) oust(bytes int64) (ousted, given int64) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	slow := b.slow(now, bytes)
	for _, r := range slow {
		r.ousted, r.given = true, r.holds.Load()
		given += r.given
		r.unlink()
		setReadDeadline(r.w, now.Add(-time.Second))
	}
	return int64(len(slow)), given
}

// slow returns the bodies to oust. b.mu is locked.
func (b *bodies) slow(now time.Time, bytes int64) []*reading {
	var slow []*reading
	for r := b.root.next; r != nil && r != &b.root && now.Sub(r.since) >= slowAfter; r = r.next {
		if now.Sub(r.since) < slowAfter+time.Duration(r.came.Load()/slowRate)*time.Second {
			continue
		}
		slow = append(slow, r)
		if bytes -= r.holds.Load(); bytes <= 0 {
			return slow
		}
	}
	return nil
}

// oust makes room for a call, which is counted, or for so many bytes of one, if there are others
// whose bodies are slow.
func (g *gate) oust(bytes int64) bool {
	ousted, given := g.bodies.oust(bytes)
	if ousted > 0 { // see drop
		g.calls.Add(-ousted)
		g.ousted.Add(ousted)
		g.bytes.Add(-given)
	}
	return ousted > 0
}

// tooSlow is the failure of a call that had to go for another.
func (x *exchange) tooSlow() error {
	return x.tooMuch("others wait, and the body takes too long to arrive")
}
