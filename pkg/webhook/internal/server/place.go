// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook/internal/body"
)

// A Place holds the resources of one call in its server: a slot in the gate, memory for the body,
// and its connection. The zero value is the place of a call outside of a server, which holds
// nothing.
type Place struct {
	gate    *Gate       // nil until the call has entered
	conn    *Connection // nil if the connection is not known
	holders atomic.Int32
	waiting atomic.Bool // no answer was sent yet
	bytes   int64       // of memory, counted in gate.bytes
	evicted bool        // the slot was given to another call
	reading *Reading    // while the body is read
}

// ErrStopping is the error of a call to a server that is stopping.
var ErrStopping = errors.New("the server is stopping")

// Enter takes a slot for a call on c, or returns ErrStopping or an Overload.
func (p *Place) Enter(g *Gate, c *Connection) error {
	p.gate, p.conn = g, c
	c.beginCall()
	p.holders.Store(1)
	p.waiting.Store(true)
	err := g.enter()
	if err != nil {
		p.Leave()
	}
	return err
}

// Evicted reports whether the server evicted the body of the call to make room for another call or connection.
func (p *Place) Evicted() bool { return p.evicted }

// Read reads the body of the call: see body.Read. It reports whether the body was evicted. Until Read returns, r tracks
// the progress of the body.
func (p *Place) Read(r *Reading, w http.ResponseWriter, from io.Reader, buf []byte, length, limit int64) (data []byte, evicted bool, err error) {
	if p.gate == nil {
		data, err = body.Read(from, buf, length, limit, func(int64) error { return nil })
		return data, false, err
	}
	p.reading = r
	p.gate.bodies.begin(r, from, w)
	data, err = body.Read(r, buf, length, limit, p.reserve)
	p.evicted, p.bytes = p.gate.bodies.end(r)
	p.reading = nil
	return data, p.evicted, err
}

func (p *Place) reserve(n int64) error { return p.gate.reserve(n, p.reading.memory.Add(n)) }

// Share keeps the slot and the memory of the call for one more goroutine, such as that of a handler. That goroutine
// must call Drop.
func (p *Place) Share() { p.holders.Add(1) }

// Answered reports to the gate that the call was answered. Only the first call of Answered has an effect.
func (p *Place) Answered() {
	if p.gate != nil && p.waiting.Swap(false) {
		p.gate.wasAnswered()
	}
}

// Leave reports that the call was answered, counts it as ended on its connection, and calls Drop.
func (p *Place) Leave() {
	p.Answered()
	p.LeaveConnection()
}

// LeaveConnection is Leave for a call whose connection was hijacked. It does not report an answer: the goroutine that
// sends the answer calls Answered.
func (p *Place) LeaveConnection() {
	if p.gate != nil {
		p.conn.endCall()
	}
	p.Drop()
}

// Drop releases the slot and the memory of the call once Drop was called for Enter and for each Share. Leave calls Drop
// for Enter.
func (p *Place) Drop() {
	if p.gate == nil || p.holders.Add(-1) != 0 {
		return
	}
	if p.evicted {
		p.gate.evicted.Add(-1)
	} else {
		p.gate.calls.Add(-1)
	}
	p.gate.bytes.Add(-p.bytes)
}

// ClosesAfter reports whether the answer to a call on c that began at start must close the
// connection.
func (g *Gate) ClosesAfter(c *Connection, start time.Time) bool {
	return g.stage.Load() >= leaving || c != nil && !start.Before(c.expires)
}
