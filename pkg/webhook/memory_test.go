// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// A bufferedConn is one end of a net.Pipe with memory for what is written, as a network has:
// without it two ends that tell each other that they close wait for each other.
type bufferedConn struct {
	net.Conn
	mu     sync.Mutex
	queue  bytes.Buffer
	closed bool
	more   chan struct{}
}

func bufferedPipe() (a, b net.Conn) {
	a, b = net.Pipe()
	return buffered(a), buffered(b)
}

func buffered(conn net.Conn) net.Conn {
	c := &bufferedConn{Conn: conn, more: make(chan struct{}, 1)}
	go c.pump()
	return c
}

// pump passes on what is written until all of it is and the end is closed.
func (c *bufferedConn) pump() {
	defer func() { _ = c.Conn.Close() }()
	for range c.more {
		c.mu.Lock()
		b, closed := bytes.Clone(c.queue.Bytes()), c.closed
		c.queue.Reset()
		c.mu.Unlock()
		if len(b) > 0 {
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		}
		if closed {
			return
		}
	}
}

func (c *bufferedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.queue.Write(b)
	c.wake()
	return len(b), nil
}

func (c *bufferedConn) wake() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// Close gives the other end a second to read what was written.
func (c *bufferedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	_ = c.Conn.SetWriteDeadline(time.Now().Add(time.Second))
	c.wake()
	return nil
}

// A write never waits, so the deadline is that for reading.
func (c *bufferedConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *bufferedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *bufferedConn) SetWriteDeadline(time.Time) error { return nil }
