// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// memoryPipe returns the two ends of a connection with a buffer, as a network has. A net.Pipe has no buffer, so each
// end would wait for the other one while it closes.
func memoryPipe() (a, b net.Conn) {
	one, other := newStream(), newStream()
	return &memoryConn{one, other}, &memoryConn{other, one}
}

type memoryConn struct{ in, out *stream }

func (c *memoryConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *memoryConn) Write(b []byte) (int, error) { return c.out.write(b) }
func (c *memoryConn) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
func (c *memoryConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}
}
func (c *memoryConn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil } // it never waits

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.in.change(func(s *stream) { s.deadline = t })
	return nil
}

func (c *memoryConn) Close() error {
	c.in.change(func(s *stream) { s.unread = true })
	c.out.change(func(s *stream) { s.ended = true })
	return nil
}

// A stream is one direction of a connection.
type stream struct {
	mu            sync.Mutex
	bytes         bytes.Buffer
	ended, unread bool // closed by the writer; closed by the reader
	deadline      time.Time
	changed       chan struct{} // closed by the next change
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

func (s *stream) change(f func(*stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) write(b []byte) (n int, err error) {
	s.change(func(s *stream) {
		if s.ended || s.unread {
			err = net.ErrClosed
			return
		}
		n, err = s.bytes.Write(b)
	})
	return n, err
}

func (s *stream) read(b []byte) (int, error) {
	for {
		s.mu.Lock()
		left := time.Until(s.deadline)
		limited, changed := !s.deadline.IsZero(), s.changed
		var n int
		var err error
		switch {
		case s.unread:
			err = net.ErrClosed
		case limited && left <= 0:
			err = os.ErrDeadlineExceeded
		case s.bytes.Len() > 0:
			n, _ = s.bytes.Read(b)
		case s.ended:
			err = io.EOF
		}
		s.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		if !limited {
			<-changed
			continue
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}
