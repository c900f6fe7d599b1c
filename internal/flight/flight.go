// SPDX-License-Identifier: Apache-2.0

// Package flight sends requests to another program on behalf of concurrent calls. Calls with the same key share a
// request, and the number of concurrent requests is limited.
package flight

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Options configure a [Group].
type Options struct {
	// To names the program that receives the requests, such as "the API server". It appears in errors.
	To string
	// Sender names the function that sends them, such as "Options.Live". It appears in errors.
	Sender string
	// Timeout limits one request, including the wait for other requests. Zero means 10 s, negative no limit.
	Timeout time.Duration
	// Most is the largest number of concurrent requests. Zero means 10, negative no limit. Further requests wait.
	Most int
	// Cancel cancels a request as soon as no call waits for it. Without Cancel, a request that was sent continues, and
	// later calls with its key share it.
	Cancel bool
}

// A Group sends requests with results of type T. It is safe for concurrent use.
type Group[T any] struct {
	options Options
	slots   *semaphore.Weighted
	mu      sync.Mutex
	open    map[string]*request[T] // those that further calls with the key can share
}

// A request is shared by calls with the same key.
type request[T any] struct {
	done   chan struct{} // closed when result and err are set
	result T
	err    error
	// Guarded by Group.mu.
	calls   int // that wait for the result
	sent    bool
	abandon context.CancelFunc // ends the wait for a slot, and with Options.Cancel the request
}

// New returns a Group with these options.
func New[T any](o Options) *Group[T] {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	most := int64(cmp.Or(o.Most, 10))
	if most < 0 {
		most = math.MaxInt64
	}
	return &Group[T]{options: o, slots: semaphore.NewWeighted(most), open: map[string]*request[T]{}}
}

// Do returns the result of send. Concurrent calls with the same key share a request, so a request continues for the
// others if the call that started it ends. If ctx ends first, Do returns ctx.Err() without wrapping it. If send
// panics, Do returns an error.
//
// A request that is still waiting when its last call ends is not sent. Otherwise the requests of calls that have given
// up would delay later calls. With [Options.Cancel], a request that was sent ends with its last call, too. If it was
// lost, the next call then sends a new one.
func (g *Group[T]) Do(ctx context.Context, key string, send func(context.Context) (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	r := g.join(ctx, key, send)
	select {
	case <-r.done:
		if r.err != nil {
			return result, r.err
		}
		return r.result, nil
	case <-ctx.Done():
		g.leave(key, r)
		return result, ctx.Err()
	}
}

// join returns the open request with this key, or begins one.
func (g *Group[T]) join(ctx context.Context, key string, send func(context.Context) (T, error)) *request[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.open[key]
	if r == nil {
		r = &request[T]{done: make(chan struct{}), err: fmt.Errorf("%s ended its goroutine", g.options.Sender)}
		g.open[key] = r
		var waiting context.Context
		ctx = context.WithoutCancel(ctx)
		waiting, r.abandon = context.WithCancel(ctx)
		go g.run(ctx, waiting, key, r, send)
	}
	r.calls++
	return r
}

// leave ends the wait of a call. If the request has no other call, leave drops it, except for a request
// that was sent without Options.Cancel.
func (g *Group[T]) leave(key string, r *request[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.calls--
	if r.calls == 0 && (!r.sent || g.options.Cancel) {
		r.abandon()
		g.close(key, r)
	}
}

// close keeps further calls from sharing the request. The caller holds g.mu.
func (g *Group[T]) close(key string, r *request[T]) {
	if g.open[key] == r {
		delete(g.open, key)
	}
}

// run sends the request and publishes the result.
func (g *Group[T]) run(ctx, waiting context.Context, key string, r *request[T], send func(context.Context) (T, error)) {
	defer func() { // also if send calls runtime.Goexit
		r.abandon()
		g.mu.Lock()
		g.close(key, r)
		g.mu.Unlock()
		close(r.done)
	}()
	r.result, r.err = g.request(ctx, waiting, r, send)
}

// request waits for a slot and sends the request.
func (g *Group[T]) request(ctx, waiting context.Context, r *request[T], send func(context.Context) (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil { // a panic here would end the program
			err = fmt.Errorf("%s panicked: %v", g.options.Sender, p)
		}
	}()
	if g.options.Timeout > 0 {
		deadline := time.Now().Add(g.options.Timeout)
		var cancel, cancelWaiting context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
		waiting, cancelWaiting = context.WithDeadline(waiting, deadline)
		defer cancelWaiting()
	}
	if err := g.slots.Acquire(waiting, 1); err != nil {
		return result, fmt.Errorf("too many requests are waiting for %s: %w", g.options.To, err)
	}
	defer g.slots.Release(1)
	if !g.begin(r) {
		return result, context.Canceled // no call waits for it
	}
	if g.options.Cancel {
		ctx = waiting
	}
	return send(ctx)
}

// begin records that the request is sent. It returns false if no call waits for the result any more.
func (g *Group[T]) begin(r *request[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.sent = r.calls > 0
	return r.sent
}
