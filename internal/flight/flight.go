// SPDX-License-Identifier: Apache-2.0

// Package flight sends requests to another program on behalf of concurrent calls. Calls with the same key share a
// request, and the number of concurrent requests is limited.
package flight

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
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
}

// A Group sends requests with results of type T. It is safe for concurrent use.
type Group[T any] struct {
	options  Options
	requests singleflight.Group
	slots    *semaphore.Weighted
}

// New returns a Group with these options.
func New[T any](o Options) *Group[T] {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	most := int64(cmp.Or(o.Most, 10))
	if most < 0 {
		most = math.MaxInt64
	}
	return &Group[T]{options: o, slots: semaphore.NewWeighted(most)}
}

// Do returns the result of send. Concurrent calls with the same key share a request, so a request continues after the
// context of the call that started it has ended. If ctx ends first, Do returns ctx.Err() without wrapping it. If send
// panics, Do returns an error.
func (g *Group[T]) Do(ctx context.Context, key string, send func(context.Context) (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	shared := g.requests.DoChan(key, func() (any, error) { return g.request(ctx, send) })
	select {
	case r := <-shared:
		if r.Err != nil {
			return result, r.Err
		}
		result, _ = r.Val.(T) // nil if T is an interface and the result is nil
		return result, nil
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// request waits for a slot and sends the request.
func (g *Group[T]) request(ctx context.Context, send func(context.Context) (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil { // a panic here would end the program
			err = fmt.Errorf("%s panicked: %v", g.options.Sender, p)
		}
	}()
	ctx = context.WithoutCancel(ctx)
	if g.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.options.Timeout)
		defer cancel()
	}
	if err := g.slots.Acquire(ctx, 1); err != nil {
		return result, fmt.Errorf("too many requests are waiting for %s: %w", g.options.To, err)
	}
	defer g.slots.Release(1)
	return send(ctx)
}
