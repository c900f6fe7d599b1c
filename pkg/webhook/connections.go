// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections are the open connections of a server. Those without a call are in one of the lists,
// in the order in which they fell silent.
type connections struct {
	max  int
	age  time.Duration
	gate *gate

	mu      sync.Mutex
	lists   [3]connection // their roots
	waiting int           // strangers and probers
	looked  time.Time     // for one that is stalled, in vain
	open    map[*connection]struct{}
	leaving int           // of those, dismissed
	changed chan struct{} // told when one is closed, or falls silent
	told    atomic.Int64  // of all that ever were, sent a farewell
}

const (
	strangers = iota // have never asked for anything
	probers          // for something else than a call
	known            // have had a call
)

func newConnections(o *Options, g *gate) *connections {
	all := &connections{max: o.MaxConnections, age: o.MaxConnectionAge, gate: g, open: map[*connection]struct{}{}, changed: make(chan struct{}, 1)}
	for i := range all.lists {
		root := &all.lists[i]
		root.prev, root.next = root, root
	}
	return all
}

// A connection is one of a server's. What net/http knows of it as a *tls.Conn is around it.
type connection struct {
	net.Conn
	all     *connections
	born    time.Time
	expires time.Time
	stage   atomic.Int32

	// Of these, all.mu is the lock.
	prev, next *connection // nil while there is a call
	silent     time.Time   // since when it is in a list, or was before it became busy
	began      time.Time   // to be busy, with nothing but short breaks since
	tls        *tls.Conn
	asked      bool // the first request, or what comes before it in HTTP/2, was read
	busy       bool
	stalled    bool // when it was dismissed
	closed     bool
	cut        *time.Timer   // closes it, once it is dismissed
	http2      *http.Server  // its own, if it speaks that; set before there are calls
	ended      chan struct{} // of HTTP/2, closed with it

	called    atomic.Bool   // a call was let in
	calls     atomic.Int32  // that are held
	left      atomic.Int64  // how old it was when the last of them was over
	kept      atomic.Bool   // the next call waits for the rest of a body: see discard
	dismissed atomic.Bool   // there will be no more calls
	told      chan struct{} // made when it is dismissed, closed when the client was told or cannot be
}

// listen has a listener's connections be among these.
func (all *connections) listen(l net.Listener) net.Listener {
	return &trackingListener{Listener: l, all: all, closed: make(chan struct{})}
}

type trackingListener struct {
	net.Listener
	all    *connections
	once   sync.Once
	closed chan struct{}
}

func (l *trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.all.makeRoom(l.closed)
	return l.all.add(conn), nil
}

func (l *trackingListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (all *connections) add(conn net.Conn) *connection {
	now := time.Now()
	c := &connection{Conn: conn, all: all, born: now, began: now, expires: now.Add(jittered(all.age))}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open[c] = struct{}{}
	all.append(c)
	return c
}

// jittered is an age, or a tenth more or less, so that connections that were made together do
// not end together. It is a nanosecond early: one of that age ends even if no time passes.
func jittered(age time.Duration) time.Duration {
	spread := age / 10
	return age - spread + min(rand.N(2*spread+1), 1<<63-1-(age-spread)) - 1
}

// A stranger is left alone until it has been silent for patience, or so many others are that
// came after it: by then it should have made its call. To wait longer would have the system turn
// new connections away. What it asks for otherwise, such as probes, buys it no time.
//
// A connection that is busy without a call is one whose client does not read, or does not send
// the rest of a body. It has as long, if it is not kept for the next call.
const (
	patience      = time.Second
	patienceKept  = 10 * time.Second // by then the call that waits for it has waited for too long
	shortBreak    = patience / 2
	manyStrangers = 500
)

// makeRoom returns when there may be another connection, or none will come. If there are too
// many, one without a call is dismissed. If that would be one that has just been made, the new
// one waits, and those after it wait where the system keeps them: who is closed before the
// answer has lost a call.
func (all *connections) makeRoom(closed <-chan struct{}) {
	for {
		silent, wait := all.dismissOne()
		if silent != nil {
			silent.dismiss()
		}
		if wait == 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-all.changed:
		case <-timer.C:
		case <-closed:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// dismissOne marks the connection that is to go for another, if one has to, or returns for how
// long to wait for one.
func (all *connections) dismissOne() (silent *connection, wait time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.open)-all.leaving < all.max {
		return nil, 0
	}
	if silent, wait = all.leastOfUse(); silent != nil {
		silent.mark()
	}
	return silent, wait
}

// leastOfUse returns the connection to dismiss. Strangers go first, else whoever makes many
// connections would drive out the API server's, then those that are busy with nothing, or with a
// slow body; those too young to go can take half of the room.
func (all *connections) leastOfUse() (*connection, time.Duration) {
	wait := time.Hour // until something changes
	for _, list := range []int{probers, strangers} {
		if oldest := all.oldest(list); oldest != nil {
			young := patience - time.Since(oldest.born)
			if young <= 0 || all.waiting > manyStrangers {
				return oldest, 0
			}
			wait = min(wait, young)
		}
	}
	stalled, young := all.stalled()
	if stalled != nil {
		return stalled, 0
	}
	wait = min(wait, young)
	if all.gate.oust(0) {
		return nil, discardOthers
	}
	if all.waiting < max(1, all.max/2) {
		if c := all.oldest(known); c != nil {
			return c, 0
		}
	}
	return nil, wait
}

// oldest returns the connection of a list that has been silent for longest, or nil.
func (all *connections) oldest(list int) *connection {
	if root := &all.lists[list]; root.next != root {
		return root.next
	}
	return nil
}

func (c *connection) list() int {
	switch {
	case c.called.Load():
		return known
	case c.asked:
		return probers
	}
	return strangers
}

func (all *connections) append(c *connection) {
	list := c.list()
	if list != known {
		all.waiting++
	}
	root := &all.lists[list]
	c.silent = time.Now()
	c.prev, c.next = root.prev, root
	c.prev.next, c.next.prev = c, c
}

// unlink takes a connection out of its list, which is the one it was put in: calls come only
// after that.
func (c *connection) unlink() {
	if c.next == nil {
		return
	}
	if c.list() != known {
		c.all.waiting--
	}
	c.prev.next, c.next.prev = c.next, c.prev
	c.prev, c.next = nil, nil
}

// onState is what net/http tells of a connection: busy from the headers of a request until the
// answer is sent, or taken away from it and then closed.
func (all *connections) onState(conn net.Conn, state http.ConnState) {
	c := connectionUnder(conn)
	if c == nil {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	switch state {
	case http.StateNew:
		c.tls = conn.(*tls.Conn)
	case http.StateActive:
		c.stage.Store(spoken)
		c.asked, c.busy = true, true
		if now := time.Now(); now.Sub(c.silent) >= shortBreak {
			c.began = now
		}
		c.unlink()
	case http.StateIdle:
		c.busy = false
		switch {
		case c.closed:
		case !c.dismissed.Load():
			if c.next == nil {
				all.append(c)
				tell(all.changed)
			}
		case c.cut != nil:
			c.cut.Reset(lingering) // a call of HTTP/2 that was on its way
		}
	}
}

func connectionUnder(conn net.Conn) *connection {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	c, _ := t.NetConn().(*connection)
	return c
}

type connectionKey struct{}

// withConnection has the contexts of a connection's requests know it.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connectionUnder(conn))
}

func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// The stages of a connection before its first request, as they show in the deadlines that
// net/http sets for reading.
const (
	opened  int32 = iota
	shaking       // hands
	shaken
	quiet // HTTP/1.1 is spoken, by nobody yet
	spoken
)

// SetReadDeadline is what net/http calls, through TLS. To it a client that has just shaken hands
// is late with the headers of a request, but Go's, and so the API server's, often makes a
// connection that it keeps for later. So until there is a byte the time is that of idle
// connections; the one for headers begins then.
func (c *connection) SetReadDeadline(t time.Time) error {
	switch stage := c.stage.Load(); {
	case stage >= spoken:
	case t.IsZero():
		c.stage.CompareAndSwap(shaking, shaken)
	case stage == opened:
		c.stage.Store(shaking)
	case stage == shaken, stage == quiet:
		c.stage.Store(quiet)
		t = t.Add(idleTimeout - headerTimeout)
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.stage.Load() == quiet && c.stage.CompareAndSwap(quiet, spoken) {
		_ = c.Conn.SetReadDeadline(time.Now().Add(headerTimeout)) // a failure shows when it is read
	}
	return n, err
}

// Close closes the connection, and is called by everybody who does.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.unlink()
	if !c.closed {
		c.closed = true
		delete(c.all.open, c)
		if c.dismissed.Load() {
			c.all.leaving--
		}
		if c.ended != nil {
			close(c.ended)
		}
	}
	if c.cut != nil {
		c.cut.Stop()
	}
	c.all.mu.Unlock()
	tell(c.all.changed)
	return c.Conn.Close()
}

func (all *connections) closeAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c := range all.open {
		_ = c.Conn.Close()
	}
}
