// SPDX-License-Identifier: Apache-2.0

package quickack

import (
	"io"
	"net"
	"syscall"
	"testing"
)

// TestDial checks that a connection still acknowledges data at once after several requests. It does not test a
// connection without package quickack, because the kernel decides when to delay acknowledgements.
func TestDial(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	c, err := Dial(t.Context(), "tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for range 10 {
		if _, err := c.Write([]byte("request")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, len("request"))); err != nil {
			t.Fatal(err)
		}
	}
	if got := atOnce(t, c.(syscall.Conn)); got != 1 {
		t.Errorf("TCP_QUICKACK is %d, want 1", got)
	}
	if _, err := Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
		t.Error("nothing listens there, and no error")
	}
}

// atOnce returns the socket option TCP_QUICKACK of a connection: 1 if the connection acknowledges data at once.
func atOnce(t *testing.T, c syscall.Conn) (now int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		now, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK)
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return now
}
