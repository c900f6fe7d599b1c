// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitkit/admitkit/pkg/external"
)

// broken is a scanner that fails while down is true, as it is at first.
type broken struct {
	scanner
	down atomic.Bool
}

func newBroken() *broken {
	b := &broken{}
	b.down.Store(true)
	b.answer = func(context.Context, scan) (bool, error) {
		if b.down.Load() {
			return false, errDown
		}
		return true, nil
	}
	return b
}

// once limits the service to one attempt for each question.
func once(o *options) { o.Attempts = -1 }

func TestTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroken()
		service := b.service(t, once)
		ask := func(name string, want error, sent int64) {
			t.Helper()
			before := b.sent.Load()
			if _, err := service.Ask(t.Context(), image(name)); !errors.Is(err, want) || b.sent.Load()-before != sent {
				t.Errorf("%s: got %v after %d requests", name, err, b.sent.Load()-before)
			}
		}
		for range 20 {
			ask("the same", errDown, 1) // counts once
		}
		for i := range 8 {
			ask(fmt.Sprint(i), errDown, 1)
		}
		b.down.Store(false)
		ask("answered", nil, 1) // resets the count of failures
		b.down.Store(true)
		for i := range 10 {
			ask(fmt.Sprint(i), errDown, 1)
		}
		ask("a", external.ErrCircuitOpen, 0)
		pass(10*time.Second - time.Millisecond)
		ask("a", external.ErrCircuitOpen, 0)
		pass(2 * time.Millisecond)
		ask("a", errDown, 1) // one trial, which opens the circuit again
		ask("a", external.ErrCircuitOpen, 0)
		pass(10*time.Second + time.Millisecond)
		b.down.Store(false)
		ask("a", nil, 1)
		b.down.Store(true)
		for i := range 10 {
			ask(fmt.Sprint(i), errDown, 1)
		}
		ask("a", external.ErrCircuitOpen, 0)
		if got := b.counted(t); !maps.Equal(got, map[string]float64{"failed": 49, "service": 2, "circuit": 4}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestOneTrial checks that a circuit that was open lets a single question through as a trial.
func TestOneTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scanner{answer: down}
		service := s.service(t, func(o *options) { once(o); o.OpenAfter, o.OpenFor = 1, time.Second })
		if _, err := service.Ask(t.Context(), image("a")); !errors.Is(err, errDown) {
			t.Errorf("got %v", err)
		}
		pass(time.Second + time.Millisecond)
		s.answer = func(context.Context, scan) (bool, error) { pass(time.Second); return true, nil }
		var all sync.WaitGroup
		var rejected atomic.Int64
		for i := range 10 {
			all.Go(func() {
				if _, err := service.Ask(t.Context(), image(fmt.Sprint(i))); errors.Is(err, external.ErrCircuitOpen) {
					rejected.Add(1)
				}
			})
		}
		if all.Wait(); rejected.Load() != 9 || s.sent.Load() != 2 {
			t.Errorf("%d were rejected, and %d sent", rejected.Load(), s.sent.Load())
		}
	})
}

func TestCircuitsThatStayClosed(t *testing.T) {
	for reason, change := range map[string]func(*options){
		"switched off":            func(o *options) { o.OpenAfter = -1 },
		"errors that users cause": func(o *options) { o.Outage = func(err error) bool { return !errors.Is(err, errDown) } },
	} {
		t.Run(reason, func(t *testing.T) {
			s := &scanner{answer: down}
			service := s.service(t, func(o *options) { once(o); change(o) })
			for i := range 30 {
				if _, err := service.Ask(t.Context(), image(fmt.Sprint(i))); !errors.Is(err, errDown) {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
}

// TestManyCalls asks from many goroutines while the service fails and recovers. It is meant for the race detector. Each
// answer must belong to its question.
func TestManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := &scanner{}
		s.answer = func(_ context.Context, q scan) (bool, error) {
			pass(time.Millisecond)
			if down.Load() {
				return false, errDown
			}
			return q.Images[0] < "5", nil
		}
		service := s.service(t, func(o *options) {
			once(o)
			o.Size, o.KeepFor, o.OpenAfter, o.OpenFor, o.MaxQuestions = 5, verdicts, 2, 20*time.Millisecond, 4
		})
		var all sync.WaitGroup
		var answered, failed atomic.Int64
		for i := range 20 {
			all.Go(func() {
				for j := range 200 {
					name := fmt.Sprint((i*7 + j*3) % 10)
					got, err := service.Ask(t.Context(), image(name))
					switch {
					case err != nil:
						failed.Add(1)
						pass(3 * time.Millisecond)
					case got != (name < "5"):
						t.Errorf("%s: got %v", name, got)
					default:
						answered.Add(1)
						pass(10 * time.Millisecond)
					}
				}
			})
		}
		go func() {
			for i := range 20 {
				pass(50 * time.Millisecond)
				down.Store(i%2 == 0)
			}
		}()
		if all.Wait(); answered.Load() == 0 || failed.Load() == 0 {
			t.Errorf("%d answered, %d failed: the test needs some of both", answered.Load(), failed.Load())
		}
	})
}
