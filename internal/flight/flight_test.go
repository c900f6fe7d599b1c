// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var options = Options{To: "the API server", Sender: "Options.Live"}

// slow returns a function that counts its calls and takes the time d, unless its context ends first.
func slow(calls *atomic.Int64, d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		calls.Add(1)
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func TestConcurrentCallsShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		g := New[string](options)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := g.Do(impatient, "a", slow(&calls, 2*time.Second)); err != context.DeadlineExceeded { //nolint:errorlint // it must not be wrapped
				t.Errorf("the impatient call got %v", err)
			}
		})
		synctest.Wait()
		for range 10 {
			all.Go(func() {
				if got, err := g.Do(t.Context(), "a", slow(&calls, 2*time.Second)); got != "done" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		if all.Wait(); calls.Load() != 1 {
			t.Errorf("got %d requests", calls.Load())
		}
	})
}

func TestLimits(t *testing.T) {
	for _, row := range []struct {
		reason        string
		timeout       time.Duration
		most          int
		takes, ended  time.Duration // of one request, and of 20 requests
		wantErr, busy bool
	}{
		{reason: "ten at a time", takes: time.Second, ended: 2 * time.Second},
		{reason: "the limit is set", most: 5, takes: time.Second, ended: 4 * time.Second},
		{reason: "no limit", most: -1, takes: time.Second, ended: time.Second},
		{reason: "a request times out after 10 s", most: -1, takes: time.Hour, ended: 10 * time.Second, wantErr: true},
		{reason: "the timeout is set", most: -1, timeout: time.Second, takes: time.Hour, ended: time.Second, wantErr: true},
		{reason: "no timeout", most: -1, timeout: -1, takes: time.Hour, ended: time.Hour},
		{reason: "the timeout includes the wait", most: 1, timeout: 3 * time.Second, takes: time.Hour, ended: 3 * time.Second, wantErr: true, busy: true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options
				o.Timeout, o.Most = row.timeout, row.most
				g := New[string](o)
				start := time.Now()
				var calls, busy atomic.Int64
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						_, err := g.Do(t.Context(), fmt.Sprint(i), slow(&calls, row.takes))
						if (err != nil) != row.wantErr || err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("got %v", err)
						}
						if err != nil && err.Error() == "too many requests are waiting for the API server: context deadline exceeded" {
							busy.Add(1)
						}
					})
				}
				all.Wait()
				if got := time.Since(start); got != row.ended || (busy.Load() > 0) != row.busy {
					t.Errorf("the requests took %v, and %d found no slot", got, busy.Load())
				}
			})
		})
	}
}

func TestFailures(t *testing.T) {
	g := New[error](options)
	if _, err := g.Do(t.Context(), "a", func(context.Context) (error, error) { panic("oops") }); err == nil || err.Error() != "Options.Live panicked: oops" {
		t.Errorf("got %v", err)
	}
	want := errors.New("no")
	if got, err := g.Do(t.Context(), "a", func(context.Context) (error, error) { return want, want }); got != nil || !errors.Is(err, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := g.Do(t.Context(), "a", func(context.Context) (error, error) { return nil, nil }); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Do(ended, "a", func(context.Context) (error, error) { t.Error("sent"); return nil, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestAbandonedRequestsAreNotSent checks that requests whose calls gave up during an outage do not delay the calls
// after it.
func TestAbandonedRequestsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New[string](Options{To: "the API server", Sender: "Options.Live", Most: 1})
		var calls atomic.Int64
		var all sync.WaitGroup
		do := func(key string, takes time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := g.Do(ctx, key, slow(&calls, takes))
			return err
		}
		all.Go(func() { _ = do("hangs", time.Hour) }) // until its timeout of 10 s
		synctest.Wait()
		for i := range 49 {
			all.Go(func() {
				if err := do(fmt.Sprint(i), 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
			time.Sleep(10 * time.Second / 55) //nolint:forbidigo // in a bubble of testing/synctest
		}
		all.Wait()              // the last calls have given up before the outage ends
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble of testing/synctest
		if err := do("later", 100*time.Millisecond); err != nil || calls.Load() != 2 {
			t.Errorf("after the outage: %v; %d requests were sent", err, calls.Load())
		}
	})
}

// TestACallDoesNotShareAnAbandonedRequest checks that a call gets its own request if that of an earlier call with the same
// key was dropped.
func TestACallDoesNotShareAnAbandonedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New[string](Options{To: "the API server", Sender: "Options.Live", Most: 1})
		var calls atomic.Int64
		sent := g.join(t.Context(), "other", slow(&calls, time.Second))
		synctest.Wait()
		dropped := g.join(t.Context(), "a", slow(&calls, time.Second))
		synctest.Wait()
		g.leave("a", dropped)
		if own := g.join(t.Context(), "a", slow(&calls, time.Second)); own == dropped {
			t.Error("the call shares a request that is not sent")
		}
		g.leave("other", sent) // has no effect
		if got, err := g.Do(t.Context(), "a", slow(&calls, time.Second)); got != "done" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if synctest.Wait(); sent.result != "done" || calls.Load() != 2 || len(g.open) != 0 {
			t.Errorf("got %q; %d requests were sent, %d are open", sent.result, calls.Load(), len(g.open))
		}
	})
}

// TestLostRequestsEndWithTheirCalls requires that a request that gets no answer does not hold up the next call.
func TestLostRequestsEndWithTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options
		o.Cancel, o.Most = true, 1
		g := New[string](o)
		var lost atomic.Int64
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Do(first, "a", slow(&lost, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first call got %v", err)
		}
		start := time.Now()
		got, err := g.Do(t.Context(), "a", func(context.Context) (string, error) { return "answered", nil })
		if got != "answered" || err != nil || time.Since(start) > 0 {
			t.Errorf("the second call got %q, %v after %v", got, err, time.Since(start))
		}
	})
}
