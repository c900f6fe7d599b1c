// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// ErrCircuitOpen is the error in a [Failure] if the service was not asked because earlier questions failed.
var ErrCircuitOpen = errors.New("not asked, because the last questions failed")

// A circuit rejects questions while the service does not work.
type circuit[A any] struct {
	breaker *gobreaker.CircuitBreaker[A] // nil if the circuit never opens
	outage  func(error) bool
	failed  failures
}

// newCircuit returns a circuit that opens after this number of failed questions, or never if after is negative. If
// outage is nil, every error counts as an outage.
func newCircuit[A any](after int, openFor time.Duration, outage func(error) bool) *circuit[A] {
	if outage == nil {
		outage = func(error) bool { return true }
	}
	c := &circuit[A]{outage: outage, failed: failures{most: after}}
	if after < 0 {
		return c
	}
	if openFor <= 0 {
		openFor = 10 * time.Second
	}
	c.breaker = gobreaker.NewCircuitBreaker[A](gobreaker.Settings{
		Timeout:      openFor,
		IsSuccessful: func(err error) bool { return err == nil || !outage(err) },
		ReadyToTrip:  func(gobreaker.Counts) bool { return c.failed.enough() },
	})
	return c
}

// isOpen reports whether run would reject every question.
func (c *circuit[A]) isOpen() bool {
	return c.breaker != nil && c.breaker.State() == gobreaker.StateOpen
}

// run calls ask and records whether it failed. If the circuit is open, it returns ErrCircuitOpen instead.
func (c *circuit[A]) run(key key, ask func() (A, error)) (A, error) {
	if c.breaker == nil {
		return ask()
	}
	answer, err := c.breaker.Execute(func() (A, error) {
		answer, err := ask()
		if err != nil && c.outage(err) {
			c.failed.add(key)
		} else {
			c.failed.reset()
		}
		return answer, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return answer, ErrCircuitOpen
	}
	return answer, err
}

// failures records the distinct questions that failed since the last answer.
type failures struct {
	most int // the number of questions after which the circuit opens
	mu   sync.Mutex
	keys map[key]bool
}

func (f *failures) add(k key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[key]bool{}
	}
	if len(f.keys) < f.most {
		f.keys[k] = true
	}
}

func (f *failures) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.keys)
}

func (f *failures) enough() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.keys) >= f.most
}
