// SPDX-License-Identifier: Apache-2.0

// Package quickack dials servers that send an answer in two segments, the headers and then the body, as
// Python's http.server and others do. With Nagle's algorithm on their side, the second one waits until the first
// is acknowledged, which this side would put off for 40 ms, in each call.
package quickack

import (
	"context"
	"net"
	"syscall"
)

// Dial is for http.Transport.DialContext: what comes in is acknowledged at once, where the system can do that.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			return &conn{tcp, raw}, nil
		}
	}
	return c, nil
}

type conn struct {
	*net.TCPConn
	raw syscall.RawConn
}

// Read acknowledges what it reads. The system forgets that it was asked to, so it is asked each time.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if err == nil {
		_ = c.raw.Control(acknowledge) // else it is slower
	}
	return n, err
}
