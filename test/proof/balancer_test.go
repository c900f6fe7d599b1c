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

// A balancer stands for a Service: it leads each new connection to the next ready endpoint. As
// kubelet and kube-proxy do it learns late of readiness, leaves connections alone that it made
// before, and refuses a connection when the endpoint does.
type balancer struct {
	port   int32
	maxLag time.Duration

	mu        sync.Mutex
	random    *rand.Rand
	endpoints []*endpoint
	next      int
	changed   chan struct{} // closed and replaced at each change
}

// An endpoint is one replica.
type endpoint struct {
	*process
	forget  context.CancelFunc
	ready   bool // as far as the balancer knows
	closed  bool // to new connections, on request
	streams int  // connections to it
}

// A replica is out of use after so many failed probes in a row, and in use after one that went
// well, as the defaults of Kubernetes have it, only faster.
const (
	probeEvery     = 100 * time.Millisecond
	probesToRemove = 3
)

// newBalancer listens until the test is over. It learns of readiness up to maxLag late, on top
// of the time between two probes.
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
			go b.lead(conn.(*net.TCPConn))
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
	})
	return b
}

// add probes the endpoint until it is removed.
func (b *balancer) add(p *process) *endpoint {
	ctx, forget := context.WithCancel(context.Background())
	e := &endpoint{process: p, forget: forget}
	b.change(func() { b.endpoints = append(b.endpoints, e) })
	go b.probe(ctx, e)
	return e
}

// terminate is the news that the replica has been told to stop. A cluster does not wait for its
// probes to fail, but this news, too, arrives late.
func (b *balancer) terminate(e *endpoint) {
	go func() {
		if b.lag(context.Background()) {
			b.change(func() { e.closed = true })
		}
	}()
}

// remove takes an endpoint away that is no more.
func (b *balancer) remove(e *endpoint) {
	e.forget()
	b.change(func() { b.endpoints = slices.DeleteFunc(b.endpoints, func(o *endpoint) bool { return o == e }) })
}

// awaitReady returns when the balancer uses the endpoint.
func (b *balancer) awaitReady(t *testing.T, e *endpoint) {
	t.Helper()
	b.await(t, "the replica is ready", func() bool { return e.ready })
}

// drain returns when no connection leads to the endpoint any more, and no new one will.
func (b *balancer) drain(t *testing.T, e *endpoint) {
	t.Helper()
	b.change(func() { e.closed = true })
	b.await(t, "no connection leads to the replica", func() bool { return e.streams == 0 })
}

func (b *balancer) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *balancer) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		b.mu.Lock()
		done, changed := is(), b.changed
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("waited 30 s until %s", what)
		}
	}
}

// probe asks as a kubelet does: over a new connection, without checking the certificate.
func (b *balancer) probe(ctx context.Context, e *endpoint) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	ready, failures := false, 0
	for {
		if failures++; probed(ctx, client, e) {
			failures = 0
		}
		if is := failures == 0; is != ready && (is || failures >= probesToRemove) {
			if !b.lag(ctx) {
				return
			}
			ready = is
			b.change(func() { e.ready = is })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func probed(ctx context.Context, client *http.Client, e *endpoint) bool {
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

// lag waits as long as this news takes to arrive.
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

// choose returns whose turn it is, with the connection counted.
func (b *balancer) choose() *endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.endpoints {
		b.next++
		if e := b.endpoints[b.next%len(b.endpoints)]; e.ready && !e.closed {
			e.streams++
			return e
		}
	}
	return nil
}

func (b *balancer) lead(client *net.TCPConn) {
	e := b.choose()
	if e == nil {
		refuse(client)
		return
	}
	defer b.change(func() { e.streams-- })
	conn, err := net.Dial("tcp", e.hello.Hooks)
	if err != nil {
		refuse(client)
		return
	}
	backend := conn.(*net.TCPConn)
	var both sync.WaitGroup
	both.Go(func() { forward(backend, client) })
	both.Go(func() { forward(client, backend) })
	both.Wait()
	_, _ = client.Close(), backend.Close()
}

// forward passes on bytes, the end of them, and a connection that broke.
func forward(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		refuse(to)
		refuse(from)
		return
	}
	_ = to.CloseWrite()
}

// refuse resets a connection.
func refuse(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
