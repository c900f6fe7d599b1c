// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// errAnswer is what a handler of these tests returns.
var errAnswer = errors.New("answer")

func TestLoop(t *testing.T) {
	t.Run("calls one handler after the other", func(t *testing.T) {
		c, calls := &Connection{}, 0
		c.Loop(func() {
			for range 100 {
				answered, err := c.call(t.Context(), func() error { calls++; return errAnswer })
				if !answered || !errors.Is(err, errAnswer) {
					t.Errorf("answered %t, error %v", answered, err)
				}
			}
		})
		if calls != 100 || c.loop != nil {
			t.Errorf("%d calls, loop %v", calls, c.loop)
		}
	})
	t.Run("goes on without a handler that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, freed, returned := &Connection{}, make(chan struct{}), 0
			c.Loop(func() {
				for range 3 {
					start := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					answered, err := c.call(ctx, func() error { <-freed; returned++; return errAnswer })
					cancel()
					if answered || err != nil || time.Since(start) != time.Minute {
						t.Errorf("answered %t, error %v, after %v", answered, err, time.Since(start))
					}
					if answered, err := c.call(t.Context(), func() error { return errAnswer }); !answered || !errors.Is(err, errAnswer) {
						t.Errorf("the next call: answered %t, error %v", answered, err)
					}
				}
			})
			for range 3 {
				freed <- struct{}{}
				synctest.Wait() // the handlers that hung end one after the other
			}
			if returned != 3 {
				t.Errorf("%d handlers returned, want 3", returned)
			}
		})
	})
	t.Run("ends if a handler hangs and the run does not go on", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, freed := &Connection{}, make(chan struct{})
		defer close(freed)
		c.Loop(func() {
			if answered, _ := c.call(ctx, func() error { cancel(); <-freed; return nil }); answered {
				t.Error("a handler that hangs answered")
			}
		})
	})
	t.Run("passes a panic on", func(t *testing.T) {
		defer func() {
			err, _ := recover().(error)
			if text := fmt.Sprint(err); !strings.HasPrefix(text, "in the run\n") || !strings.Contains(text, "TestLoop") {
				t.Errorf("recovered %s", text) // the stack must name the function that panicked
			}
		}()
		c := &Connection{}
		c.Loop(func() {
			_, _ = c.call(t.Context(), func() error { return nil })
			panic("in the run")
		})
	})
	t.Run("ends the goroutine, as t.FailNow does", func(t *testing.T) {
		ended := make(chan bool)
		go func() {
			defer close(ended)
			c := &Connection{}
			c.Loop(func() {
				_, _ = c.call(t.Context(), func() error { return nil })
				runtime.Goexit()
			})
			ended <- true
		}()
		if <-ended {
			t.Error("Loop returned after runtime.Goexit")
		}
	})
	t.Run("is called by a goroutine that is locked to a thread", func(t *testing.T) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c, calls := &Connection{}, 0
		c.Loop(func() { _, _ = c.call(t.Context(), func() error { calls++; return nil }) })
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
	t.Run("goes on after a handler that ends its goroutine", func(t *testing.T) {
		c := &Connection{}
		c.Loop(func() {
			answered, err := c.call(t.Context(), func() error { runtime.Goexit(); return nil })
			if !answered || !errors.Is(err, errExited) {
				t.Errorf("answered %t, error %v", answered, err)
			}
			if answered, err := c.call(t.Context(), func() error { return errAnswer }); !answered || !errors.Is(err, errAnswer) {
				t.Errorf("the next call: answered %t, error %v", answered, err)
			}
		})
	})
	t.Run("calls apart", func(t *testing.T) {
		c := &Connection{}
		c.Loop(func() {
			back := c.Apart()
			inner := make(chan struct{})
			go func() {
				defer close(inner)
				if answered, err := c.call(t.Context(), func() error { return errAnswer }); !answered || !errors.Is(err, errAnswer) {
					t.Errorf("answered %t, error %v", answered, err)
				}
			}()
			<-inner
			back()
			if answered, _ := c.call(t.Context(), func() error { return nil }); !answered {
				t.Error("no answer after the calls apart")
			}
		})
	})
}
