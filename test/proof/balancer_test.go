// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// A balancer simulates a Service: it forwards each new connection to the next ready endpoint. Like kubelet
// and kube-proxy, it learns of readiness with a delay, keeps existing connections, and resets a connection
// that the endpoint refuses.
type balancer struct {
	port   int32
	maxLag time.Duration

	mu        sync.Mutex
	random    *rand.Rand
	endpoints []*endpoint
	next      int
	opened    int             // connections that were opened
	busy      []time.Duration // times from the first bytes of a request to the first bytes of the answer
	changed   chan struct{}   // closed and replaced whenever an endpoint changes
}

// An endpoint is one replica behind the balancer.
type endpoint struct {
	*process
	stopProbes  context.CancelFunc
	ready       bool // as far as the balancer knows
	closed      bool // the balancer opens no new connections to it
	connections map[*connection]bool
	killed      bool
	exposed     exposure // exposed calls since the replica was killed
}

// A connection is a client's connection that the balancer forwards to an endpoint. It carries at most one call at a
// time, since the API server calls webhooks over HTTP/1.1.
type connection struct {
	turns      int       // how often the client began to send: in the handshake, and for each request
	fromClient bool      // the last bytes came from the client
	began      time.Time // when the client began to send
}

// isIdle reports whether the connection carries no call: the handshake is complete, and the server sent the
// last bytes. Session tickets do not affect this, because API servers do not cache TLS sessions.
func (c *connection) isIdle() bool { return c.turns >= 2 && !c.fromClient }

// An exposure counts the calls that may fail because a replica was killed.
type exposure struct {
	inFlight int // calls in flight on the replica when it was killed
	late     int // calls or close alerts on an idle connection, sent before the client saw that it had ended
	refused  int // new connections to the replica before the balancer noticed the kill
}

func (e exposure) total() int { return e.inFlight + e.late + e.refused }

// The balancer stops using a replica after this many failed probes in a row. It uses the replica again after one
// successful probe. These are the defaults of Kubernetes, but with a shorter period.
const (
	probeEvery     = 100 * time.Millisecond
	probesToRemove = 3
)

// newBalancer returns a balancer that listens until the end of the test. It learns of a change of readiness
// up to maxLag after the probe that shows it.
func newBalancer(t *testing.T, maxLag time.Duration) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{
		port: int32(listener.Addr().(*net.TCPAddr).Port), maxLag: maxLag,
		random: newRandom("balancer of " + t.Name()), changed: make(chan struct{}),
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.forward(conn.(*net.TCPConn))
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
	})
	return b
}

// add adds an endpoint and probes it until it is removed.
func (b *balancer) add(p *process) *endpoint {
	ctx, stopProbes := context.WithCancel(context.Background())
	e := &endpoint{process: p, stopProbes: stopProbes, connections: map[*connection]bool{}}
	b.change(func() { b.endpoints = append(b.endpoints, e) })
	go b.probe(ctx, e)
	return e
}

// terminate stops new connections to the endpoint after the lag, as a cluster does when a Pod is deleted.
func (b *balancer) terminate(e *endpoint) {
	go func() {
		if b.lag(context.Background()) {
			b.change(func() { e.closed = true })
		}
	}()
}

// remove removes the endpoint of a process that has ended.
func (b *balancer) remove(e *endpoint) {
	e.stopProbes()
	b.change(func() { b.endpoints = slices.DeleteFunc(b.endpoints, func(o *endpoint) bool { return o == e }) })
}

// awaitReady waits until the balancer uses the endpoint.
func (b *balancer) awaitReady(t *testing.T, e *endpoint) {
	t.Helper()
	b.await(t, "the replica is ready", func() bool { return e.ready })
}

// drain stops new connections to the endpoint and waits until the existing ones are closed.
func (b *balancer) drain(t *testing.T, e *endpoint) {
	t.Helper()
	b.change(func() { e.closed = true })
	b.await(t, "the replica has no connections", func() bool { return len(e.connections) == 0 })
}

// kill kills the process of the endpoint without draining it. If removed is true, the balancer opens no further
// connections to it. Otherwise the balancer notices the kill when its probes fail.
func (b *balancer) kill(e *endpoint, removed bool) {
	b.change(func() {
		for c := range e.connections {
			if !c.isIdle() {
				e.exposed.inFlight++
			}
		}
		e.killed, e.closed = true, removed
		e.doomed.Store(true)
		_ = e.cmd.Process.Kill()
	})
}

// exposure returns the exposed calls of a killed endpoint so far.
func (b *balancer) exposure(e *endpoint) exposure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.exposed
}

// count returns the number of connections that were opened so far, and of those that are open.
func (b *balancer) count() (opened, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.endpoints {
		open += len(e.connections)
	}
	return b.opened, open
}

// callTime returns the median of the times for which a call needs its connection.
func (b *balancer) callTime() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Sorted(slices.Values(b.busy))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// change calls f with the lock held and wakes the goroutines in await.
func (b *balancer) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// await waits until happened returns true, for 30 seconds at most.
func (b *balancer) await(t *testing.T, event string, happened func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		b.mu.Lock()
		done, changed := happened(), b.changed
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("timed out after 30 s waiting until %s", event)
		}
	}
}

// probe sends readiness probes like a kubelet: over a new connection, without verifying the certificate.
func (b *balancer) probe(ctx context.Context, e *endpoint) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	ready, failures := false, 0
	for {
		if failures++; isReady(ctx, client, e) {
			failures = 0
		}
		if now := failures == 0; now != ready && (now || failures >= probesToRemove) {
			if !b.lag(ctx) {
				return
			}
			ready = now
			b.change(func() { e.ready = now })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func isReady(ctx context.Context, client *http.Client, e *endpoint) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+e.hello.Hooks+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// lag waits for the delay of one notification. It returns false if ctx ends first.
func (b *balancer) lag(ctx context.Context) bool {
	if b.maxLag == 0 {
		return ctx.Err() == nil
	}
	b.mu.Lock()
	timer := time.NewTimer(time.Duration(b.random.Int64N(int64(b.maxLag))))
	b.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// choose returns the next endpoint and a new connection to it, or nil if no endpoint is in use.
func (b *balancer) choose() (*endpoint, *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.endpoints {
		b.next++
		if e := b.endpoints[b.next%len(b.endpoints)]; e.ready && !e.closed {
			c := &connection{}
			e.connections[c] = true
			b.opened++
			return e, c
		}
	}
	return nil, nil
}

// forward forwards a connection of a client to an endpoint until both have closed it.
func (b *balancer) forward(client *net.TCPConn) {
	e, c := b.choose()
	if e == nil {
		reset(client)
		return
	}
	defer b.change(func() { delete(e.connections, c) })
	conn, err := net.Dial("tcp", e.hello.Hooks)
	if err != nil {
		b.change(func() {
			if e.killed {
				e.exposed.refused++
			}
		})
		reset(client)
		return
	}
	backend := conn.(*net.TCPConn)
	var both sync.WaitGroup
	both.Go(func() { copyBytes(backend, client, func() { b.recordBytes(e, c, true) }) })
	both.Go(func() { copyBytes(client, backend, func() { b.recordBytes(e, c, false) }) })
	both.Wait()
	_, _ = client.Close(), backend.Close()
}

// recordBytes records which side sent last. copyBytes calls it before it forwards the bytes.
func (b *balancer) recordBytes(e *endpoint, c *connection, fromClient bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case fromClient && !c.fromClient:
		c.began = time.Now()
		if c.turns++; e.killed {
			e.exposed.late++
		}
	case !fromClient && c.fromClient && c.turns > 2: // not in the handshake, nor with the first request
		b.busy = append(b.busy, time.Since(c.began))
	}
	c.fromClient = fromClient
}

// copyBytes copies bytes and the end of the stream. It resets both connections if one fails. It calls
// received after each read, before it writes the bytes.
func copyBytes(to, from *net.TCPConn, received func()) {
	if _, err := io.Copy(to, readFunc(func(p []byte) (int, error) {
		n, err := from.Read(p)
		if n > 0 {
			received()
		}
		return n, err
	})); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.CloseWrite()
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// reset closes a connection with a TCP reset.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
