// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
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

func (d *drain) run(ctx context.Context) error {
	whole := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(whole, d.timeout)
	defer cancel()
	d.gate.stage.Store(stopping)
	cutOff := d.await(ctx)
	_ = d.listener.Close()
	select {
	case <-d.served:
	case <-ctx.Done():
	}
	if cutOff == 0 {
		d.end(whole)
	}
	err := d.server.Close()
	d.connections.closeAll() // what waits to say goodbye, too
	if cutOff > 0 {
		return errors.Join(fmt.Errorf("%d calls in flight were cut off after %s", cutOff, d.timeout), err)
	}
	return err
}

// await waits for the calls in flight, and returns how many are left at the end of ctx.
func (d *drain) await(ctx context.Context) (left int64) {
	for d.gate.waiting.Load() > 0 {
		select {
		case <-d.gate.answered:
		case <-ctx.Done():
			return d.gate.waiting.Load()
		}
	}
	return 0
}

// end has every client know that there will be no more answers. All calls have theirs, though
// some may be on their way. The time for that is not
// part of the one for calls, but no longer.
func (d *drain) end(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, min(d.timeout, lingering+time.Second)) // one for the client to hear it
	_ = d.connections.dismissSilent(short)                                           // what is left is closed
	cancel()
	short, cancel = context.WithTimeout(ctx, min(d.timeout, lingering))
	_ = d.server.Shutdown(short) // by HTTP/2
	cancel()
}
