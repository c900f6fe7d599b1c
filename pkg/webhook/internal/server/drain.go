// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"
)

// A Drain stops a server after its ShutdownDelay. By then it should have no calls: the cluster no
// longer sends calls to a replica that is not ready, and each answer has closed its connection. A
// call that still arrives is answered 503 with Retry-After: 0. The API server then repeats the call
// at once over another connection, which leads to another replica if there is one.
//
// http.Server.Shutdown does none of this: it closes the listener first, then the idle connections,
// and drops the requests that arrive meanwhile. So it comes last.
type Drain struct {
	Server      *http.Server
	Listener    net.Listener
	Served      <-chan struct{} // closed when Server accepts no more connections
	Gate        *Gate
	Connections *Connections
	Timeout     time.Duration
}

// lastNotices is the time for close notices after the listener is closed: a second more than clients
// have to close a connection.
const lastNotices = lingerTime + time.Second

// Run drains the server within the timeout and returns how many calls were cut off. It closes idle connections from the
// beginning, since a call over them would be refused. Calls in flight have the whole timeout. The last close notices
// are sent near the end of the timeout.
func (d *Drain) Run(ctx context.Context) (cutOff int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Timeout)
	defer cancel()
	d.Gate.stage.Store(stopping)
	last := min(lastNotices, d.Timeout/2)
	listening, stop := context.WithTimeout(ctx, d.Timeout-last)
	d.await(listening, math.MaxInt)
	stop()
	ending, stop := context.WithTimeout(ctx, last) // ends no later than ctx
	defer stop()
	d.closeListener(ending)
	d.await(ending, 0)
	cutOff = d.Gate.Waiting()
	if err = d.Server.Close(); errors.Is(err, net.ErrClosed) {
		err = nil // closeListener has closed the listener
	}
	d.Connections.closeAll() // including those that the client has not closed yet
	if cutOff > 0 {
		err = errors.Join(fmt.Errorf("%d calls in flight were cut off after %s", cutOff, d.Timeout), err)
	}
	return cutOff, err
}

// await closes connections as they become idle, until all calls are answered and at most maxOpen
// connections are open, or ctx is done.
func (d *Drain) await(ctx context.Context, maxOpen int) {
	for {
		open, wait := d.Connections.notifyIdle()
		if d.Gate.Waiting() == 0 && open <= maxOpen {
			return
		}
		select {
		case <-d.Gate.answered:
		case <-d.Connections.changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (d *Drain) closeListener(ctx context.Context) {
	_ = d.Listener.Close()
	select {
	case <-d.Served:
	case <-ctx.Done():
	}
}
