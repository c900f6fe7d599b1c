// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Connections are the open connections of a server. There are at most max.
type Connections struct {
	connectionSet
	max     int
	age     time.Duration
	evict   func() bool  // Gate.EvictSlowBody
	scanned time.Time    // end of the last scan that found no stalled connection; guarded by mu
	notices atomic.Int64 // close notices sent
}

// NewConnections returns an empty Connections. It limits the number of open connections to maximum, and their age to
// about age. evictSlowBody must evict a slow body, so that its connection becomes idle, and report whether there was
// one.
func NewConnections(maximum int, age time.Duration, evictSlowBody func() bool) *Connections {
	all := &Connections{max: maximum, age: age, evict: evictSlowBody}
	all.open, all.changed = map[*Connection]struct{}{}, make(chan struct{}, 1)
	for i := range all.lists {
		root := &all.lists[i]
		root.state.prev, root.state.next = root, root
	}
	return all
}

// Count returns how many connections are open.
func (all *Connections) Count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.open)
}

// Notices returns how many close notices were sent.
func (all *Connections) Notices() int64 { return all.notices.Load() }

// Listen wraps l. The returned listener counts each connection that it accepts. At the limit, its method Accept waits
// until there is room.
func (all *Connections) Listen(l net.Listener) net.Listener {
	return &trackingListener{Listener: l, all: all, closed: make(chan struct{})}
}

// A trackingListener adds each connection that it accepts to the field all.
type trackingListener struct {
	net.Listener
	all    *Connections
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

func (all *Connections) add(conn net.Conn) *Connection {
	now := time.Now()
	c := &Connection{Conn: conn, all: &all.connectionSet, opened: now, expires: now.Add(jittered(all.age))}
	c.state.busySince = now
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open[c] = struct{}{}
	all.link(c)
	return c
}

// jittered adds or subtracts up to a tenth of the age, so that connections that were opened together do not
// close together. It subtracts a nanosecond, so that with an age of one nanosecond each answer closes its
// connection.
func jittered(age time.Duration) time.Duration {
	spread := age / 10
	return age - spread + min(rand.N(2*spread+1), 1<<63-1-(age-spread)) - 1
}

// makeRoom waits until there is room for another connection, or closed is closed. At the limit it closes one
// connection. If victim finds none to close, the new connection waits, and later ones wait in the accept queue of the
// operating system. Closing a connection before its answer would lose a call.
func (all *Connections) makeRoom(closed <-chan struct{}) {
	for {
		victim, wait := all.markVictim()
		if victim != nil {
			all.notify(victim)
		}
		if wait == 0 {
			return
		}
		select {
		case <-all.changed:
		case <-time.After(wait):
		case <-closed:
			return
		}
	}
}

// markVictim chooses a connection to close if the limit is reached, and marks it. If there is room, victim is nil and
// wait is zero. If no connection can be closed yet, victim is nil and wait is how long to wait.
func (all *Connections) markVictim() (victim *Connection, wait time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.open)-all.closing < all.max {
		return nil, 0
	}
	if victim, wait = all.victim(); victim != nil {
		victim.mark()
	}
	return victim, wait
}

// OnState is the ConnState of the http.Server. A connection is active from the headers of a request
// until the answer is sent.
func (all *Connections) OnState(conn net.Conn, state http.ConnState) {
	c := connectionUnder(conn)
	if c == nil {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	s := &c.state
	switch state {
	case http.StateNew:
		s.tls = conn.(*tls.Conn)
	case http.StateActive:
		c.phase.Store(phaseRequested)
		s.requested, s.busy = true, true
		if now := time.Now(); now.Sub(s.idleSince) >= shortBreak {
			s.busySince = now
		}
		c.unlink()
	case http.StateIdle:
		s.busy = false
		switch {
		case s.closed:
		case !c.closing.Load():
			if s.next == nil {
				all.link(c)
				wake(all.changed)
			}
		case s.cutOff != nil:
			s.cutOff.Reset(lingerTime) // after a call that was on its way over HTTP/2
		}
	}
}

// closeAll closes all connections at once, without a close notice.
func (all *Connections) closeAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c := range all.open {
		_ = c.Conn.Close()
	}
}
