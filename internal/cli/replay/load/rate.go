// SPDX-License-Identifier: Apache-2.0

// Package load sends recorded calls to a server at a rate, and measures the latency. Use it to find
// out how many calls a webhook can answer, and how fast.
package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Rate says when calls are sent. One of its fields is set.
type Rate struct {
	// Factor is the speed relative to the recording. With 10, calls are sent ten times as fast.
	Factor float64
	// PerSecond is a number of calls per second, at equal intervals.
	PerSecond float64
	// Max sends on each connection as soon as it is free.
	Max bool
}

// ParseRate parses a rate such as 1x, 10x, 250/s or max.
func ParseRate(text string) (Rate, error) {
	number := func(unit string) (float64, bool) {
		digits, found := strings.CutSuffix(text, unit)
		n, err := strconv.ParseFloat(digits, 64)
		return n, found && err == nil && n >= 0.001 && n <= 1e6
	}
	if text == "max" {
		return Rate{Max: true}, nil
	}
	if n, ok := number("x"); ok {
		return Rate{Factor: n}, nil
	}
	if n, ok := number("/s"); ok {
		return Rate{PerSecond: n}, nil
	}
	return Rate{}, fmt.Errorf("%q is not a rate like 1x, 10x, 250/s or max", text)
}

// String returns the rate in the form that ParseRate accepts.
func (r Rate) String() string {
	switch {
	case r.Max:
		return "max"
	case r.Factor > 0:
		return strconv.FormatFloat(r.Factor, 'f', -1, 64) + "x"
	}
	return strconv.FormatFloat(r.PerSecond, 'f', -1, 64) + "/s"
}

// maxGap is the longest pause between two calls. Recordings are sampled, so in a longer pause there may have been calls that
// were not recorded.
const maxGap = 10 * time.Second

// A schedule computes the time at which each call is due, from the beginning of the run.
type schedule struct {
	rate Rate
	n    int
	last time.Time // the latest one of the recorded calls, or zero at the beginning of the recording
	due  time.Duration
}

// next returns when the next call is due. recorded is the time at which it was recorded. With the rate max, each call is due
// at once, and next returns 0.
func (s *schedule) next(recorded time.Time) time.Duration {
	n := s.n
	s.n++
	switch {
	case s.rate.Max:
		return 0
	case s.rate.PerSecond > 0:
		return time.Duration(math.Round(float64(n) / s.rate.PerSecond * float64(time.Second)))
	}
	gap := recorded.Sub(s.last)
	if s.last.IsZero() || gap < -maxGap {
		gap, s.last = 0, recorded // a recording begins
	}
	if gap > 0 { // a call is recorded at its end, so one with an earlier time can follow
		s.due += time.Duration(float64(min(gap, maxGap)) / s.rate.Factor)
		s.last = recorded
	}
	return s.due
}
