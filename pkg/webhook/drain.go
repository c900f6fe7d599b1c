// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"
)

// A drain is the end of a server that is told to stop, once [Options.ShutdownDelay] is over. By
// then it should have no calls, since nobody in the cluster calls a replica that has not been
// ready for so long, and each answer since has closed its connection. What still comes finds a
// listener and an answer, 503 with Retry-After: 0, upon which the API server makes the call
// again at once and over another connection, which leads to another replica if there is one.
//
// http.Server.Shutdown does none of this: it closes the listener first, then the idle
// connections, and drops the requests that arrive meanwhile. So it comes last.
type drain struct {
	server      *http.Server
	listener    net.Listener
	served      <-chan struct{} // closed when the listener has no more connections
	gate        *gate
	connections *connections
	timeout     time.Duration
}

// goodbye is how long clients have to hear that there will be no more answers, once the listener
// is closed: a second more than they have to close a connection.
const goodbye = lingering + time.Second

// run takes no longer than the timeout, and returns how many calls were cut off. Idle connections
// are told from the beginning, since a call over them would get the same answer. Calls in flight
// have all of the time, but if they need the last of it they have it together with those who are
// told at the end.
func (d *drain) run(ctx context.Context) (cutOff int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.timeout)
	defer cancel()
	d.gate.stage.Store(stopping)
	last := min(goodbye, d.timeout/2)
	listening, stop := context.WithTimeout(ctx, d.timeout-last)
	d.await(listening, math.MaxInt)
	stop()
	ending, stop := context.WithTimeout(ctx, last) // no later than ctx
	defer stop()
	d.close(ending)
	d.await(ending, 0)
	cutOff = d.gate.waiting.Load()
	err = d.server.Close()
	d.connections.closeAll() // what waits to say goodbye, too
	if cutOff > 0 {
		err = errors.Join(fmt.Errorf("%d calls in flight were cut off after %s", cutOff, d.timeout), err)
	}
	return cutOff, err
}

// await tells connections as they fall silent, until all calls are answered and no more than so
// many connections are open, or ctx is done.
func (d *drain) await(ctx context.Context, mostOpen int) {
	for {
		open, wait := d.connections.dismissSilent()
		if d.gate.waiting.Load() == 0 && open <= mostOpen {
			return
		}
		again := time.NewTimer(wait)
		select {
		case <-d.gate.answered:
		case <-d.connections.changed:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
		again.Stop()
	}
}

// close has no more connections come.
func (d *drain) close(ctx context.Context) {
	_ = d.listener.Close()
	select {
	case <-d.served:
	case <-ctx.Done():
	}
}
