// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/record"
)

// Options configure Run. All but Duration and Progress are required.
type Options struct {
	// Send sends a call, and returns an error if the answer is not one that the API server accepts. It is called by
	// Connections goroutines.
	Send func(ctx context.Context, call *record.Call) error
	// Calls returns the recorded calls. Run calls it again after the last call, if Duration has not passed.
	Calls       func() iter.Seq2[*record.Call, error]
	Rate        Rate
	Connections int
	// Duration is the length of the run. With 0, each call is sent once.
	Duration time.Duration
	// Progress is called after each call is put into the queue, with the number of calls so far. It may be nil.
	Progress func(calls int)
}

// A Report is the result of Run.
type Report struct {
	Rate        string `json:"rate"`
	Connections int    `json:"connections"`
	// Calls is the number of calls, and Failed the number of calls for which Send returned an error.
	Calls    int       `json:"calls"`
	Failed   int       `json:"failed"`
	Failures []Failure `json:"failures,omitempty"`
	// Seconds is the length of the run. Wanted and Achieved are calls per second. Wanted is 0 for the rate max.
	Seconds  float64 `json:"seconds"`
	Wanted   float64 `json:"wantedPerSecond,omitempty"`
	Achieved float64 `json:"achievedPerSecond"`
	// BehindSeconds is how late the last call was sent, because the connections were busy. A call that was due and could
	// not be sent is late by the end of the run.
	BehindSeconds float64 `json:"behindSeconds"`
	// Latency counts from the time at which a call was due. So if a slow call delays the next ones, these count as slow,
	// too. Without this, a load test has the error called coordinated omission. Service counts from the time at which a
	// call was sent.
	Latency Percentiles `json:"latency"`
	Service Percentiles `json:"service"`

	sending time.Duration // the part of the run in which calls are sent
}

// Percentiles are percentiles of durations. In JSON, they are in nanoseconds.
type Percentiles struct {
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p99.9"`
	Max  time.Duration `json:"max"`
}

// A Failure counts calls that failed for a reason.
type Failure struct {
	Reason string `json:"reason"`
	Calls  int    `json:"calls"`
}

// Run sends the calls. It fails if the recording cannot be read or has no call, or if ctx ends. After Duration, it
// sends no more calls, and returns when the calls in flight have ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	outer := ctx
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	m := newMeter()
	queue := make(chan dueCall, o.Connections)
	var workers sync.WaitGroup
	began := time.Now()
	for range o.Connections {
		workers.Go(func() {
			for one := range queue {
				if ctx.Err() == nil {
					m.send(outer, o.Send, one, o.Rate.Max) // the calls in flight end after Duration
				} else if !o.Rate.Max {
					m.late(one, began.Add(o.Duration)) // no new one begins
				}
			}
		})
	}
	fed, last, err := o.feed(ctx, began, queue)
	close(queue)
	workers.Wait()
	took := time.Since(began)
	switch {
	case outer.Err() != nil:
		return nil, context.Cause(outer)
	case err != nil:
		return nil, err
	case m.calls == 0:
		return nil, errors.New("the recording has no call")
	}
	r := m.report()
	r.Rate, r.Connections, r.Seconds, r.Achieved = o.Rate.String(), o.Connections, took.Seconds(), float64(m.calls)/took.Seconds()
	r.sending = took
	if o.Duration > 0 {
		r.sending = min(took, o.Duration)
	}
	if o.Rate.Max {
		return r, nil
	}
	if r.Wanted = o.Rate.PerSecond; r.Wanted == 0 && last > 0 {
		r.Wanted = float64(fed-1) / last.Seconds()
	}
	return r, nil
}

// A dueCall is a call and the time at which it should be sent.
type dueCall struct {
	call *record.Call
	at   time.Time
}

// feed puts calls into the queue when they are due, and returns their number and when the last one was due. If the workers
// are late, the queue is full and feed waits, but the due times stay.
func (o *Options) feed(ctx context.Context, began time.Time, queue chan<- dueCall) (fed int, last time.Duration, err error) {
	s := schedule{rate: o.Rate}
	for {
		before := fed
		s.last = time.Time{}
		for call, err := range o.Calls() {
			if err != nil {
				return fed, last, err
			}
			after := s.next(call.Time)
			if !o.Rate.Max && !wait(ctx, began.Add(after)) {
				return fed, last, nil
			}
			select {
			case queue <- dueCall{call, began.Add(after)}:
			case <-ctx.Done():
				return fed, last, nil
			}
			last = after
			if fed++; o.Progress != nil {
				o.Progress(fed)
			}
		}
		if o.Duration == 0 || fed == before {
			return fed, last, nil
		}
	}
}

// wait waits until a time. It returns false if ctx ends first.
func wait(ctx context.Context, until time.Time) bool {
	d := time.Until(until)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A meter measures calls. It is safe for concurrent use.
type meter struct {
	mu               sync.Mutex
	calls            int
	failures         map[string]int
	latency, service *hdrhistogram.Histogram
	last             time.Time     // when the last call was due
	behind           time.Duration // how late it was sent
}

// The range of the histograms, in microseconds. It is long, because a call can wait long before it is sent.
const (
	shortest = 1
	longest  = int64(10 * time.Minute / time.Microsecond)
)

func newMeter() *meter {
	return &meter{failures: map[string]int{}, latency: hdrhistogram.New(shortest, longest, 3), service: hdrhistogram.New(shortest, longest, 3)}
}

// send sends a call and measures it. If fromSending is true, the latency counts from the time at which the call is sent.
func (m *meter) send(ctx context.Context, send func(context.Context, *record.Call) error, one dueCall, fromSending bool) {
	sent := time.Now()
	err := send(ctx, one.call)
	end := time.Now()
	if fromSending {
		one.at = sent
	}
	m.late(one, sent)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	_ = m.latency.RecordValue(within(end.Sub(one.at))) // it is in the range
	_ = m.service.RecordValue(within(end.Sub(sent)))
	if err != nil {
		m.failures[m.reason(err)]++
	}
}

// late records how late a call was sent, if it is the last one. A call that is still in the queue at the end of the run is
// late by then.
func (m *meter) late(one dueCall, sent time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !one.at.Before(m.last) {
		m.last, m.behind = one.at, sent.Sub(one.at)
	}
}

// maxReasons is the maximum number of reasons of failures that are told apart.
const maxReasons = 20

func (m *meter) reason(err error) string {
	text := textutil.Clip(textutil.FirstLine(err.Error()), 200)
	if _, known := m.failures[text]; !known && len(m.failures) >= maxReasons {
		return "other reasons"
	}
	return text
}

// within returns a duration in microseconds, limited to the range of the histograms.
func within(d time.Duration) int64 { return min(max(d.Microseconds(), shortest), longest) }

func (m *meter) report() *Report {
	r := &Report{Calls: m.calls, BehindSeconds: m.behind.Seconds(), Latency: percentiles(m.latency), Service: percentiles(m.service)}
	for reason, calls := range m.failures {
		r.Failed += calls
		r.Failures = append(r.Failures, Failure{reason, calls})
	}
	slices.SortFunc(r.Failures, func(a, b Failure) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Reason, b.Reason)) })
	return r
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(p float64) time.Duration { return time.Duration(h.ValueAtPercentile(p)) * time.Microsecond }
	return Percentiles{at(50), at(90), at(99), at(99.9), time.Duration(h.Max()) * time.Microsecond}
}

// Late reports whether the rate was not reached: the last call was late by more than 5 percent of the run.
func (r *Report) Late() bool { return r.BehindSeconds > max(0.05*r.sending.Seconds(), 0.01) }

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	row := func(name string, p Percentiles) string {
		text := fmt.Sprintf("%-9s", name)
		for _, d := range []time.Duration{p.P50, p.P90, p.P99, p.P999, p.Max} {
			text += fmt.Sprintf("%12s", fmt.Sprintf("%.2f ms", d.Seconds()*1000))
		}
		return text + "\n"
	}
	text := fmt.Sprintf("%-9s%12s%12s%12s%12s%12s\n", "LOAD", "p50", "p90", "p99", "p99.9", "max") + row("latency", r.Latency) + row("service", r.Service)
	text += textutil.Wrap("", "latency: from the time at which the call was due; service: from the time at which it was sent", 80) + "\n"
	for _, f := range r.Failures {
		text += textutil.Wrap("FAILED  ", fmt.Sprintf("%s: %s", textutil.Count(f.Calls, "call"), f.Reason), 80)
	}
	verdict := fmt.Sprintf("%s in %.1f s at the rate %s on %s: %.1f per second, %d failed.", textutil.Count(r.Calls, "call"), r.Seconds, r.Rate, textutil.Count(r.Connections, "connection"), r.Achieved, r.Failed)
	if r.Late() {
		verdict += fmt.Sprintf(" The wanted %.1f per second were not reached: the webhook or this machine is too slow for this number of connections.", r.Wanted)
	}
	_, err := io.WriteString(w, text+textutil.Wrap("", verdict, 80))
	return err
}
