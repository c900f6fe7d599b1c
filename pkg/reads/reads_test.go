// SPDX-License-Identifier: Apache-2.0

package reads_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/reads"
)

var namespaces = schema.GroupResource{Resource: "namespaces"}

func notFound(name string) error { return apierrors.NewNotFound(namespaces, name) }

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// A source stands in for the cache and for the API server. Its cache holds only the Namespace "cached". Unless answer
// is set, its API server has only the Namespace "new".
type source struct {
	lives   atomic.Int64
	atOnce  atomic.Int64
	most    atomic.Int64
	answer  func(ctx context.Context, name string) (*corev1.Namespace, error)
	metrics *prometheus.Registry
}

func (s *source) reader(t *testing.T, change func(*reads.Options[*corev1.Namespace])) *reads.Reader[*corev1.Namespace] {
	t.Helper()
	s.metrics = prometheus.NewRegistry()
	o := reads.Options[*corev1.Namespace]{
		Resource: "namespaces",
		Metrics:  s.metrics,
		Cached: func(_, name string) (*corev1.Namespace, error) {
			if name == "cached" {
				return namespace(name), nil
			}
			return nil, notFound(name)
		},
		Live: func(ctx context.Context, _, name string) (*corev1.Namespace, error) {
			s.lives.Add(1)
			for now := s.atOnce.Add(1); ; {
				most := s.most.Load()
				if now <= most || s.most.CompareAndSwap(most, now) {
					break
				}
			}
			defer s.atOnce.Add(-1)
			if s.answer != nil {
				return s.answer(ctx, name)
			}
			if name == "new" {
				return namespace(name), nil
			}
			return nil, notFound(name)
		},
	}
	if change != nil {
		change(&o)
	}
	r, err := reads.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counted returns the values of the counter admitkit_reads_total, by the value of the label source.
func (s *source) counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := m.GetLabel() // sorted by name
			counts[labels[1].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return counts
}

func TestGet(t *testing.T) {
	for _, in := range []struct {
		reason, name string
		lives        int64
		found        bool
		source       string
	}{
		{reason: "an object of the cache needs no request", name: "cached", found: true, source: "cache"},
		{reason: "a miss needs one request", name: "new", lives: 1, found: true, source: "live"},
		{reason: "so does an object that does not exist", name: "gone", lives: 1, source: "live"},
	} {
		t.Run(in.reason, func(t *testing.T) {
			s := &source{}
			got, err := s.reader(t, nil).Get(t.Context(), "", in.name)
			switch {
			case in.found && (err != nil || got.Name != in.name):
				t.Errorf("got %v, %v", got, err)
			case !in.found && (!errors.Is(err, reads.ErrNotFound) || err.Error() != "namespaces gone: does not exist"):
				t.Errorf("got %v", err)
			case s.lives.Load() != in.lives:
				t.Errorf("got %d requests", s.lives.Load())
			}
			if got := s.counted(t); len(got) != 1 || got[in.source] != 1 {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestImpossibleNames checks that a name that no object can have is not found, without a request.
func TestImpossibleNames(t *testing.T) {
	for _, name := range []string{"", "a/b", "..", "a%b"} {
		s := &source{}
		if _, err := s.reader(t, nil).Get(t.Context(), "", name); !errors.Is(err, reads.ErrNotFound) || s.lives.Load() > 0 {
			t.Errorf("%q: got %v after %d requests", name, err, s.lives.Load())
		}
	}
}

// TestMissingObjectsAreRemembered checks that reads of a missing object share one request for as long as NotFoundFor
// says. Once this time has passed since the start of the last request, a read must find an object that was created
// meanwhile, even if that request was slow.
func TestMissingObjectsAreRemembered(t *testing.T) {
	const slow = 900 * time.Millisecond
	for name, in := range map[string]struct {
		set, keep time.Duration
		lives     int64
	}{"by default": {0, time.Second, 1}, "negative": {-1, 0, 10}, "a minute": {time.Minute, time.Minute, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &source{answer: func(_ context.Context, name string) (*corev1.Namespace, error) {
					<-time.After(slow)
					return nil, notFound(name)
				}}
				r := s.reader(t, func(o *reads.Options[*corev1.Namespace]) { o.NotFoundFor = in.set })
				for range 10 {
					if _, err := r.Get(t.Context(), "", "late"); !errors.Is(err, reads.ErrNotFound) {
						t.Fatal(err)
					}
				}
				if s.lives.Load() != in.lives {
					t.Errorf("got %d requests, want %d", s.lives.Load(), in.lives)
				}
				s.answer = func(_ context.Context, name string) (*corev1.Namespace, error) { return namespace(name), nil }
				<-time.After(max(in.keep-slow, 0) + time.Millisecond)
				if _, err := r.Get(t.Context(), "", "late"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStaleReadsAreCounted checks that a read from a cache whose watch is cut has an answer, and is counted as stale.
func TestStaleReadsAreCounted(t *testing.T) {
	s, cut := &source{}, false
	r := s.reader(t, func(o *reads.Options[*corev1.Namespace]) { o.Stale = func() bool { return cut } })
	for _, cut = range []bool{false, true, true} {
		for _, name := range []string{"cached", "new"} {
			if got, err := r.Get(t.Context(), "", name); err != nil || got.Name != name {
				t.Errorf("got %v, %v", got, err)
			}
		}
	}
	if got := s.counted(t); got["cache"] != 1 || got["stale"] != 2 || got["live"] != 3 {
		t.Errorf("got %v", got)
	}
}

// TestEndedContextAsksNothing checks that a read whose context has ended makes no request.
func TestEndedContextAsksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &source{}
	if _, err := s.reader(t, nil).Get(ctx, "", "new"); !errors.Is(err, context.Canceled) || s.lives.Load() > 0 {
		t.Errorf("got %v and %d requests", err, s.lives.Load())
	}
}

// TestConcurrentMissesShareARequest checks that concurrent reads of a missing object share one request. A read whose
// deadline passes must end without ending that request.
func TestConcurrentMissesShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{answer: func(ctx context.Context, name string) (*corev1.Namespace, error) {
			select {
			case <-time.After(2 * time.Second):
				return namespace(name), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		r := s.reader(t, nil)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := make(chan error)
		go func() { _, err := r.Get(short, "", "slow"); results <- err }() // the first read; its end must not end the shared request
		synctest.Wait()
		for range 20 {
			go func() { _, err := r.Get(t.Context(), "", "slow"); results <- err }()
		}
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the impatient call got %v", err)
		}
		for range 20 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if s.lives.Load() != 1 {
			t.Errorf("got %d requests", s.lives.Load())
		}
	})
}

func TestLiveRequestsAreBounded(t *testing.T) {
	for name, in := range map[string]struct {
		most int
		want int64
	}{"by default": {0, 10}, "two": {2, 2}, "no limit": {-1, 40}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &source{answer: func(_ context.Context, name string) (*corev1.Namespace, error) {
					<-time.After(time.Millisecond) // on the clock of the bubble
					return namespace(name), nil
				}}
				r := s.reader(t, func(o *reads.Options[*corev1.Namespace]) { o.MaxLive = in.most })
				results := make(chan error)
				for i := range 40 {
					go func() { _, err := r.Get(t.Context(), "", strings.Repeat("n", i+1)); results <- err }()
				}
				for range 40 {
					if err := <-results; err != nil {
						t.Error(err)
					}
				}
				if got := s.most.Load(); got != in.want {
					t.Errorf("got %d requests at a time, want %d", got, in.want)
				}
			})
		})
	}
}

// TestRequestsThatHangEnd calls Get with an Options.Live that hangs until its context ends. It checks that Get fails
// after Timeout, also for a second read that waits for a free slot.
func TestRequestsThatHangEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{answer: func(ctx context.Context, _ string) (*corev1.Namespace, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		r := s.reader(t, func(o *reads.Options[*corev1.Namespace]) { o.MaxLive, o.Timeout = 1, 3*time.Second })
		start := time.Now()
		results := make(chan error)
		for _, name := range []string{"a", "b"} {
			go func() { _, err := r.Get(t.Context(), "", name); results <- err }()
		}
		for range 2 {
			if err := <-results; err == nil || errors.Is(err, reads.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

// TestErrorsHaveNoAPIStatus checks that no error of Get contains an API status. If a handler returned such an error,
// the status would turn a failure into a denial.
func TestErrorsHaveNoAPIStatus(t *testing.T) {
	for name, cause := range map[string]error{
		"forbidden":         apierrors.NewForbidden(namespaces, "a", errors.New("no rule")),
		"too many requests": apierrors.NewTooManyRequests("later", 1),
		"not found":         notFound("a"),
		"any other":         errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &source{answer: func(context.Context, string) (*corev1.Namespace, error) { return nil, cause }}
			_, err := s.reader(t, nil).Get(t.Context(), "", "a")
			var status apierrors.APIStatus
			if err == nil || errors.As(err, &status) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "namespaces a") || name == "forbidden" && !strings.Contains(err.Error(), "Deps.Needs") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("of the cache", func(t *testing.T) {
		s := &source{}
		r := s.reader(t, func(o *reads.Options[*corev1.Namespace]) {
			o.Cached = func(string, string) (*corev1.Namespace, error) { return nil, errors.New("the cache has not started") }
		})
		if _, err := r.Get(t.Context(), "", "a"); err == nil || s.lives.Load() > 0 {
			t.Errorf("got %v and %d requests", err, s.lives.Load())
		}
	})
	t.Run("a panic", func(t *testing.T) {
		s := &source{answer: func(context.Context, string) (*corev1.Namespace, error) { panic("oops") }}
		if _, err := s.reader(t, nil).Get(t.Context(), "", "a"); err == nil || !strings.Contains(err.Error(), "panicked: oops") {
			t.Errorf("got %v", err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := reads.New(reads.Options[*corev1.Namespace]{})
	if err == nil || !strings.Contains(err.Error(), "Resource is required") || !strings.Contains(err.Error(), "Cached and Options.Live are required") {
		t.Errorf("got %v", err)
	}
	t.Run("readers share a registry", func(t *testing.T) {
		s := &source{}
		s.reader(t, nil)
		registry := s.metrics
		s.reader(t, func(o *reads.Options[*corev1.Namespace]) { o.Metrics, o.Resource = registry, "pods" })
	})
	t.Run("another collector has the name", func(t *testing.T) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "admitkit_reads_total"}))
		none := func(string, string) (*corev1.Namespace, error) { return nil, nil }
		live := func(context.Context, string, string) (*corev1.Namespace, error) { return nil, nil }
		if _, err := reads.New(reads.Options[*corev1.Namespace]{Resource: "a", Cached: none, Live: live, Metrics: registry}); err == nil {
			t.Error("got no error")
		}
	})
}
