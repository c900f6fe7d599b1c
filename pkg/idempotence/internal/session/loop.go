// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// A loop calls the handlers of a run in turn with the run's own code, which is a coroutine. To start a goroutine for
// each call is a quarter of the time of a run with a small webhook, because it wakes another thread each time.
//
// If a handler does not return in time, another goroutine goes on with the loop, and the first one ends after the
// handler has returned.
type loop struct {
	next  func() (*job, bool) // continues the run until it calls a handler
	yield func(*job) bool     // leaves the run until the handler has returned, or its time is over
	ended chan end
	// panicked has the value and the stack of a panic of the run.
	panicked error
}

// A job is a call of a handler.
type job struct {
	ctx      context.Context
	handler  func() error
	err      error       // of the handler
	finished atomic.Bool // the handler returned, or its time is over
	answered bool        // the handler returned in time
}

// An end says how a run ended, if it did not return.
type end struct {
	panicked error
	exited   bool // by runtime.Goexit, as t.FailNow does
}

// errExited is the error of a handler that ends its goroutine.
var errExited = errors.New("the handler ended its goroutine (runtime.Goexit), as t.FailNow does")

// Loop calls run, and returns when run returns. Until then, the handlers that run calls share one goroutine.
func (c *Connection) Loop(run func()) {
	l := &loop{ended: make(chan end, 1)}
	c.loop = l
	go func() {
		// A coroutine of a goroutine that is locked to a thread could run on that thread only, so it is created here.
		l.next, _ = iter.Pull(func(yield func(*job) bool) {
			l.yield = yield
			defer func() {
				if p := recover(); p != nil { // the stack would be lost
					l.panicked = fmt.Errorf("%v\n\n%s", p, debug.Stack())
				}
			}()
			run()
		})
		l.drive()
	}()
	e := <-l.ended
	c.loop = nil
	switch {
	case e.panicked != nil:
		panic(e.panicked)
	case e.exited:
		runtime.Goexit()
	}
}

// Apart gives each handler a goroutine of its own until back is called, for calls that are made at the same time, or
// that belong to a bubble of testing/synctest.
func (c *Connection) Apart() (back func()) {
	if c == nil {
		return func() {}
	}
	was := c.loop
	c.loop = nil
	return func() { c.loop = was }
}

// call runs a handler until it returns or ctx ends. If ctx ends first, call reports false, and the handler may still
// run.
func (c *Connection) call(ctx context.Context, handler func() error) (answered bool, err error) {
	j := &job{ctx: ctx, handler: handler}
	if c != nil && c.loop != nil {
		c.loop.yield(j)
		return j.answered, j.err
	}
	done := make(chan error, 1)
	go func() { done <- handler() }()
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
		return false, nil
	}
}

// drive continues the run and calls its handlers, until the run ends or a handler exceeds its time.
func (l *loop) drive() {
	var current *job // whose handler runs
	inRun := false
	defer func() { // for runtime.Goexit
		switch {
		case inRun:
			l.ended <- end{exited: true}
		case current != nil && current.finish(errExited):
			go l.drive()
		}
	}()
	for {
		inRun = true
		j, ok := l.next()
		inRun = false
		if !ok {
			l.ended <- end{panicked: l.panicked}
			return
		}
		stop := context.AfterFunc(j.ctx, func() {
			if j.finished.CompareAndSwap(false, true) {
				l.drive()
			}
		})
		current = j
		err := j.handler()
		current = nil
		if !j.finish(err) {
			return
		}
		stop()
	}
}

// finish records the result of the handler. It reports false if the time of the handler was over before.
func (j *job) finish(err error) bool {
	if !j.finished.CompareAndSwap(false, true) {
		return false
	}
	j.answered, j.err = true, err
	return true
}
