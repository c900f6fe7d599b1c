// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitkit/admitkit/pkg/record"
)

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		text string
		want Rate
	}{
		{"1x", Rate{Factor: 1}}, {"10x", Rate{Factor: 10}}, {"0.5x", Rate{Factor: 0.5}}, {"250/s", Rate{PerSecond: 250}}, {"max", Rate{Max: true}},
		{"", Rate{}}, {"x", Rate{}}, {"10", Rate{}}, {"-1x", Rate{}}, {"0x", Rate{}}, {"NaNx", Rate{}}, {"Infx", Rate{}}, {"1e9/s", Rate{}}, {"1/m", Rate{}}, {"maximum", Rate{}},
	} {
		got, err := ParseRate(c.text)
		if got != c.want || (err == nil) != (c.want != Rate{}) {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		}
		if err == nil && got.String() != c.text {
			t.Errorf("%q is printed as %q", c.text, got)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add("10x")
	f.Add("250/s")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			return
		}
		again, err := ParseRate(r.String())
		if err != nil || again != r {
			t.Errorf("%q is %+v, printed as %q, which is %+v, %v", text, r, r, again, err)
		}
	})
}

// recording returns calls that were recorded at these times, in seconds.
func recording(seconds ...float64) func() iter.Seq2[*record.Call, error] {
	return func() iter.Seq2[*record.Call, error] {
		return func(yield func(*record.Call, error) bool) {
			for _, s := range seconds {
				at := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
				if !yield(&record.Call{Time: at}, nil) {
					return
				}
			}
		}
	}
}

// TestSchedule checks when calls are sent, in simulated time.
func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		reason string
		rate   Rate
		limit  time.Duration
		want   []time.Duration
	}{
		{"as recorded", Rate{Factor: 1}, 0, []time.Duration{0, time.Second, 3 * time.Second, 13 * time.Second}}, // the last pause is shortened
		{"twice as fast", Rate{Factor: 2}, 0, []time.Duration{0, time.Second / 2, 1500 * time.Millisecond, 6500 * time.Millisecond}},
		{"four per second", Rate{PerSecond: 4}, 0, []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}},
		{"one per second, for longer than the recording", Rate{PerSecond: 1}, 5500 * time.Millisecond, []time.Duration{0, 1e9, 2e9, 3e9, 4e9, 5e9}},
		{"as recorded, for longer than the recording", Rate{Factor: 1}, 15 * time.Second, []time.Duration{0, 1e9, 3e9, 13e9, 13e9, 14e9}},
		{"at once", Rate{Max: true}, 0, []time.Duration{0, 0, 0, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sent []time.Duration
			began := time.Now()
			r, err := Run(t.Context(), Options{Rate: c.rate, Connections: 1, Duration: c.limit, Calls: recording(0, 1, 3, 3000), Send: func(context.Context, *record.Call) error {
				sent = append(sent, time.Since(began))
				return nil
			}})
			if err != nil || r.Calls != len(c.want) || r.Late() {
				t.Fatalf("%s: %+v, %v", c.reason, r, err)
			}
			for i := range c.want {
				if sent[i] != c.want[i] {
					t.Errorf("%s: sent at %v, want %v", c.reason, sent, c.want)
				}
			}
		})
	}
}

// TestDisorder checks that calls with earlier times than the call before them do not stretch the schedule, and that another
// recording begins at once.
func TestDisorder(t *testing.T) {
	s := schedule{rate: Rate{Factor: 1}}
	want := []time.Duration{0, 2e9, 2e9, 3e9, 3e9, 4e9, 4e9}
	for i, seconds := range []float64{100, 102, 101, 103, 50, 51, 50.5} {
		if got := s.next(time.Unix(1000, 0).Add(time.Duration(seconds * 1e9))); got != want[i] {
			t.Errorf("call %d is due at %s, want %s", i, got, want[i])
		}
	}
}

// TestHang checks that a webhook that hangs until the end of the run makes it late, although each call was sent in time.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r, err := Run(t.Context(), Options{Rate: Rate{PerSecond: 100}, Connections: 1, Duration: 2 * time.Second, Calls: recording(0), Send: func(context.Context, *record.Call) error {
			if n++; n == 101 {
				<-time.After(60 * time.Second)
			}
			return nil
		}})
		if err != nil || r.Failed != 0 || !r.Late() || r.Wanted != 100 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestInterrupt checks that calls in flight end with the context.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := Run(ctx, Options{Rate: Rate{Max: true}, Connections: 2, Calls: recording(0, 0), Send: func(ctx context.Context, _ *record.Call) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil
		}})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// TestStall checks that the calls that wait behind a slow one count as slow, too, although the webhook answers them at once.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r, err := Run(t.Context(), Options{Rate: Rate{PerSecond: 100}, Connections: 1, Duration: 10 * time.Second, Calls: recording(0), Send: func(context.Context, *record.Call) error {
			if n++; n == 101 {
				<-time.After(5 * time.Second)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Latency.P90 < 3*time.Second || r.Service.P99 > time.Millisecond || r.Service.Max < 4900*time.Millisecond {
			t.Errorf("latency %+v, service %+v", r.Latency, r.Service)
		}
	})
}

// TestLate checks that a run that does not reach its rate reports this.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Run(t.Context(), Options{Rate: Rate{PerSecond: 100}, Connections: 2, Duration: 10 * time.Second, Calls: recording(0), Send: func(context.Context, *record.Call) error {
			<-time.After(100 * time.Millisecond)
			return nil
		}})
		var text strings.Builder
		if err != nil || !r.Late() || r.Achieved > 21 || r.WriteText(&text) != nil || !strings.Contains(text.String(), "The wanted 100.0 per second were not reached") {
			t.Errorf("%+v, %v\n%s", r, err, &text)
		}
	})
}

// TestSlowAnswers checks that a short run with slow answers is not late, because each call is sent in time.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Run(t.Context(), Options{Rate: Rate{PerSecond: 250}, Connections: 10, Calls: recording(make([]float64, 10)...), Send: func(context.Context, *record.Call) error {
			<-time.After(20 * time.Millisecond)
			return nil
		}})
		if err != nil || r.Late() || r.Calls != 10 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestEnd checks that a run ends after its duration, although the webhook hangs, and that a canceled run returns an error.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(context.Context, *record.Call) error {
			<-time.After(30 * time.Second)
			return errors.New("too late")
		}
		began := time.Now()
		r, err := Run(t.Context(), Options{Rate: Rate{PerSecond: 100}, Connections: 2, Duration: 10 * time.Second, Calls: recording(0), Send: hang})
		if took := time.Since(began); err != nil || r.Failed != 2 || took != 30*time.Second+10*time.Millisecond {
			t.Errorf("%+v, %v after %s", r, err, took)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		if _, err := Run(ctx, Options{Rate: Rate{PerSecond: 1}, Connections: 1, Calls: recording(0, 0, 0), Send: func(context.Context, *record.Call) error { return nil }}); err == nil || err.Error() != "interrupted" {
			t.Errorf("a canceled run: %v", err)
		}
	})
}

func TestFailures(t *testing.T) {
	var n atomic.Int64
	r, err := Run(t.Context(), Options{Rate: Rate{Max: true}, Connections: 4, Calls: recording(make([]float64, 100)...), Send: func(context.Context, *record.Call) error {
		if n.Add(1)%4 == 0 {
			return errors.New("HTTP 500")
		}
		return nil
	}})
	if err != nil || r.Calls != 100 || r.Failed != 25 || len(r.Failures) != 1 || r.Failures[0] != (Failure{"HTTP 500", 25}) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Run(t.Context(), Options{Rate: Rate{Max: true}, Connections: 1, Calls: recording(), Duration: time.Second}); err == nil || err.Error() != "the recording has no call" {
		t.Errorf("without calls: %v", err)
	}
	broken := func() iter.Seq2[*record.Call, error] {
		return func(yield func(*record.Call, error) bool) { yield(nil, errors.New("the disk is broken")) }
	}
	if _, err := Run(t.Context(), Options{Rate: Rate{Max: true}, Connections: 1, Calls: broken}); err == nil || err.Error() != "the disk is broken" {
		t.Errorf("a broken recording: %v", err)
	}
}
