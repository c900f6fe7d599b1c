// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/external"
)

// A scan is the request that the tests send to the service: it asks about images.
type scan struct {
	Images []string `json:"images"`
}

type options = external.Options[scan, bool]

func image(name string) scan { return scan{Images: []string{name}} }

// A scanner is a service that calls the function answer. If that is nil, all images but "bad" are allowed.
type scanner struct {
	answer  func(ctx context.Context, q scan) (bool, error)
	sent    atomic.Int64
	atOnce  atomic.Int64
	most    atomic.Int64
	metrics *prometheus.Registry
}

func (s *scanner) send(ctx context.Context, q scan) (bool, error) {
	s.sent.Add(1)
	for now := s.atOnce.Add(1); ; {
		most := s.most.Load()
		if now <= most || s.most.CompareAndSwap(most, now) {
			break
		}
	}
	defer s.atOnce.Add(-1)
	if s.answer != nil {
		return s.answer(ctx, q)
	}
	return q.Images[0] != "bad", nil
}

func (s *scanner) service(t *testing.T, change func(*options)) *external.Service[scan, bool] {
	t.Helper()
	s.metrics = prometheus.NewRegistry()
	o := options{Name: "scanner", Send: s.send, OnFailure: external.Fail[scan, bool], Metrics: s.metrics}
	if change != nil {
		change(&o)
	}
	service, err := external.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// counted returns the values of the counter by the label source.
func (s *scanner) counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		labels := m.GetLabel() // sorted by name
		counts[labels[1].GetValue()] = m.GetCounter().GetValue()
	}
	return counts
}

// verdicts is a KeepFor: a minute for answers that allow, and a second for others.
func verdicts(allowed bool) time.Duration {
	if allowed {
		return time.Minute
	}
	return time.Second
}

var errDown = errors.New("the service is down")

func down(context.Context, scan) (bool, error) { return false, errDown }

// hangs does not answer before its context ends.
func hangs(ctx context.Context, _ scan) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// pass waits for d on the clock of the synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestAnswersAreKept(t *testing.T) {
	for _, in := range []struct {
		reason, image string
		change        func(*options)
		kept          time.Duration // zero: not at all
	}{
		{reason: "allowed", image: "good", kept: time.Minute},
		{reason: "denied", image: "bad", kept: time.Second},
		{reason: "the size is negative", image: "good", change: func(o *options) { o.Size = -1 }},
		{reason: "KeepFor is nil", image: "good", change: func(o *options) { o.KeepFor = nil }},
		{reason: "KeepFor is negative", image: "good", change: func(o *options) { o.KeepFor = func(bool) time.Duration { return -1 } }},
	} {
		t.Run(in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scanner{}
				service := s.service(t, func(o *options) {
					if o.KeepFor = verdicts; in.change != nil {
						in.change(o)
					}
				})
				ask := func(want int64) {
					t.Helper()
					if got, err := service.Ask(t.Context(), image(in.image)); err != nil || got != (in.image == "good") || s.sent.Load() != want {
						t.Errorf("got %v, %v after %d requests, want %d", got, err, s.sent.Load(), want)
					}
				}
				ask(1)
				if in.kept == 0 {
					ask(2)
					return
				}
				pass(in.kept - time.Millisecond)
				ask(1)
				pass(2 * time.Millisecond)
				ask(2)
				if got := s.counted(t); !maps.Equal(got, map[string]float64{"cache": 1, "service": 2}) {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

func TestKeptAnswersAreBounded(t *testing.T) {
	s := &scanner{}
	service := s.service(t, func(o *options) { o.Size, o.KeepFor = 2, verdicts })
	for _, name := range []string{"a", "b", "c", "c", "b", "a"} {
		if _, err := service.Ask(t.Context(), image(name)); err != nil {
			t.Fatal(err)
		}
	}
	if s.sent.Load() != 4 { // a was dropped and is asked again
		t.Errorf("got %d requests", s.sent.Load())
	}
}

func TestEqualQuestionsShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scanner{answer: func(ctx context.Context, q scan) (bool, error) {
			pass(2 * time.Second)
			return q.Images[0] == "good", ctx.Err()
		}}
		service := s.service(t, nil)
		impatient, cancel := context.WithCancel(t.Context())
		question := image("good")
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := service.Ask(impatient, question); !errors.Is(err, context.Canceled) {
				t.Errorf("the impatient call got %v", err)
			}
			question.Images[0] = "bad" // the handler may change its question
		})
		synctest.Wait()
		for range 10 {
			all.Go(func() {
				if got, err := service.Ask(t.Context(), image("good")); !got || err != nil {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		if all.Wait(); s.sent.Load() != 1 {
			t.Errorf("got %d requests", s.sent.Load())
		}
	})
}

func TestQuestionsAreBounded(t *testing.T) {
	for in, want := range map[int]int64{0: 50, 3: 3, -1: 60} {
		synctest.Test(t, func(t *testing.T) {
			s := &scanner{answer: func(context.Context, scan) (bool, error) { pass(time.Second); return true, nil }}
			service := s.service(t, func(o *options) { o.MaxQuestions, o.Timeout = in, time.Minute })
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					if _, err := service.Ask(t.Context(), image(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				})
			}
			if all.Wait(); s.most.Load() != want {
				t.Errorf("got %d questions at a time, want %d", s.most.Load(), want)
			}
		})
	}
}

func TestAttempts(t *testing.T) {
	for _, in := range []struct {
		reason        string
		change        func(*options)
		fails         int64 // attempts that fail
		sent          int64
		least, atMost time.Duration
		wantErr       bool
	}{
		{reason: "the first answers", sent: 1},
		{reason: "the third answers", fails: 2, sent: 3, least: 250 * time.Millisecond, atMost: 300 * time.Millisecond},
		{reason: "there is no fourth", fails: 3, sent: 3, least: 250 * time.Millisecond, atMost: 300 * time.Millisecond, wantErr: true},
		{reason: "both options are set", change: func(o *options) { o.Attempts, o.Backoff = 5, time.Second }, fails: 4, sent: 5, least: 8 * time.Second, atMost: 10 * time.Second},
		{reason: "only one attempt", change: func(o *options) { o.Attempts = -1 }, fails: 1, sent: 1, wantErr: true},
		{reason: "without a pause", change: func(o *options) { o.Backoff = -1 }, fails: 2, sent: 3},
		{reason: "an error that is not retried", change: func(o *options) { o.Retry = func(err error) bool { return !errors.Is(err, errDown) } }, fails: 1, sent: 1, wantErr: true},
		{reason: "no time for a pause", change: func(o *options) { o.Backoff, o.Timeout = time.Hour, time.Second }, fails: 1, sent: 1, least: time.Second, atMost: time.Second, wantErr: true},
	} {
		t.Run(in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scanner{}
				s.answer = func(ctx context.Context, q scan) (bool, error) {
					if s.sent.Load() <= in.fails {
						return down(ctx, q)
					}
					return true, nil
				}
				start := time.Now()
				_, err := s.service(t, in.change).Ask(t.Context(), image("a"))
				if took := time.Since(start); took < in.least || took > in.atMost {
					t.Errorf("took %v", took)
				}
				if (err != nil) != in.wantErr || err != nil && (!errors.Is(err, errDown) || err.Error() != "asking scanner: the service is down") || s.sent.Load() != in.sent {
					t.Errorf("got %v after %d attempts", err, s.sent.Load())
				}
			})
		})
	}
}

// TestAskLeavesTimeForTheAnswer checks that Ask returns before the deadline of the call.
func TestAskLeavesTimeForTheAnswer(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{5 * time.Second: 4500 * time.Millisecond, 30 * time.Second: 29 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &scanner{answer: hangs}
			service := s.service(t, func(o *options) { o.Timeout = time.Minute })
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			start := time.Now()
			_, err := service.Ask(ctx, image("a"))
			if time.Since(start) != want || ctx.Err() != nil {
				t.Errorf("took %v", time.Since(start))
			}
			if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "asking scanner: no answer in time: context deadline exceeded" {
				t.Errorf("got %v", err)
			}
			pass(time.Minute) // the request ends, too
		})
	}
}

func TestOnFailure(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "scans"}, "a", errDown)
	s := &scanner{answer: func(context.Context, scan) (bool, error) { return false, forbidden }}
	_, err := s.service(t, nil).Ask(t.Context(), image("a"))
	var status apierrors.APIStatus
	if errors.As(err, &status) || !errors.Is(err, forbidden) || !strings.HasPrefix(err.Error(), "asking scanner: ") {
		t.Errorf("got %v", err)
	}
	service := s.service(t, func(o *options) { o.OnFailure = external.AnswerWith[scan](true) })
	if got, err := service.Ask(t.Context(), image("a")); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	service = s.service(t, func(o *options) {
		o.KeepFor = verdicts
		o.OnFailure = func(q scan, failure *external.Failure) (bool, error) {
			if failure.Service != "scanner" || !errors.As(failure.Err, &status) {
				t.Errorf("got %+v", failure)
			}
			return q.Images[0] == "trusted", nil
		}
	})
	for name, want := range map[string]bool{"a": false, "trusted": true} {
		before := s.sent.Load()
		for range 2 { // the result of a failure is not kept
			if got, err := service.Ask(t.Context(), image(name)); got != want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		}
		if got := s.sent.Load() - before; got != 6 {
			t.Errorf("got %d requests", got)
		}
	}
	if got := s.counted(t); !maps.Equal(got, map[string]float64{"failed": 4}) {
		t.Errorf("got %v", got)
	}
}

func TestPanics(t *testing.T) {
	s := &scanner{answer: func(context.Context, scan) (bool, error) { panic("oops") }}
	if _, err := s.service(t, nil).Ask(t.Context(), image("a")); err == nil || err.Error() != "asking scanner: Options.Send panicked: oops" {
		t.Errorf("got %v", err)
	}
}

func TestQuestionsThatCannotBeEncoded(t *testing.T) {
	service, err := external.New(external.Options[chan int, bool]{
		Name: "scanner", OnFailure: external.Fail[chan int, bool],
		Send: func(context.Context, chan int) (bool, error) { t.Error("sent"); return true, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Ask(t.Context(), nil); err == nil || !strings.HasPrefix(err.Error(), "asking scanner: encoding the question: ") {
		t.Errorf("got %v", err)
	}
	oneWay, err := external.New(external.Options[fmt.Stringer, bool]{
		Name: "scanner", OnFailure: external.Fail[fmt.Stringer, bool],
		Send: func(context.Context, fmt.Stringer) (bool, error) { t.Error("sent"); return true, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oneWay.Ask(t.Context(), time.Second); err == nil || !strings.HasPrefix(err.Error(), "asking scanner: decoding the question: ") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := external.New(options{})
	for _, want := range []string{"Name is required", "Send is required", "OnFailure is required: use Fail or AnswerWith"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	s := &scanner{}
	s.service(t, nil)
	registry := s.metrics
	s.service(t, func(o *options) { o.Metrics, o.Name = registry, "other" })
	registry = prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "admitkit_external_total"}))
	if _, err := external.New(options{Name: "scanner", Send: s.send, OnFailure: external.Fail[scan, bool], Metrics: registry}); err == nil {
		t.Error("want an error for another collector of that name")
	}
}
