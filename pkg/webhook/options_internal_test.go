// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMemoryLimitBoundsBodies(t *testing.T) {
	const mib = 1 << 20
	small, large := (&Hook{}).WithMaxBodyBytes(mib), (&Hook{}).WithMaxBodyBytes(64*mib)
	for _, in := range []struct {
		reason string
		o      Options
		hooks  []*Hook
		memory int64
		want   int64
	}{
		{reason: "no goal", hooks: []*Hook{{}}, memory: math.MaxInt64, want: 256 * mib},
		{reason: "the memory limit of the examples", hooks: []*Hook{{}}, memory: 205 * mib, want: 25 * mib},
		{reason: "much memory", hooks: []*Hook{{}}, memory: 64 << 30, want: 256 * mib},
		{reason: "the largest default", hooks: []*Hook{{}}, memory: 2048 * mib, want: 256 * mib},
		{reason: "little memory, but a body must fit", hooks: []*Hook{{}, nil}, memory: 32 * mib, want: 16 * mib},
		{reason: "a body of the server's limit", o: Options{MaxBodyBytes: 20 * mib}, hooks: []*Hook{{}}, memory: 32 * mib, want: 20 * mib},
		{reason: "bodies of the hooks' own limits", hooks: []*Hook{small, large}, memory: 32 * mib, want: 64 * mib},
		{reason: "small bodies", hooks: []*Hook{small}, memory: 32 * mib, want: 4 * mib},
		{reason: "no hooks", memory: 32 * mib, want: 4 * mib},
		{reason: "an explicit limit", o: Options{MaxInFlightBytes: 100 * mib}, hooks: []*Hook{{}}, memory: 205 * mib, want: 100 * mib},
		{reason: "explicitly no limit", o: Options{MaxInFlightBytes: -1}, hooks: []*Hook{{}}, memory: 205 * mib, want: math.MaxInt64},
	} {
		t.Run(in.reason, func(t *testing.T) {
			if got := in.o.completed(in.hooks, in.memory).MaxInFlightBytes; got != in.want {
				t.Errorf("got %d, want %d", got, in.want)
			}
		})
	}
}

func TestLimitValues(t *testing.T) {
	for _, in := range []struct {
		reason string
		o      Options
		want   string
	}{
		{"defaults", Options{}, "maxInFlight=1000 maxInFlightBytes=256Mi maxBodyBytes=16Mi maxConnections=2000 maxConnectionAge=5m0s shutdownDelay=10s drainTimeout=35s"},
		{"odd ones", Options{MaxInFlight: 7, MaxInFlightBytes: 24<<20 + 1, MaxBodyBytes: 100 << 10, MaxConnections: 1234, MaxConnectionAge: time.Second / 2, ShutdownDelay: -1, DrainTimeout: time.Minute},
			"maxInFlight=7 maxInFlightBytes=25165825 maxBodyBytes=100Ki maxConnections=1234 maxConnectionAge=500ms shutdownDelay=0s drainTimeout=1m0s"},
		{"no limits", Options{MaxInFlight: -1, MaxInFlightBytes: -1, MaxBodyBytes: -1, MaxConnections: -1, MaxConnectionAge: -1, DrainTimeout: -1},
			"maxInFlight=none maxInFlightBytes=none maxBodyBytes=none maxConnections=none maxConnectionAge=none shutdownDelay=10s drainTimeout=none"},
	} {
		t.Run(in.reason, func(t *testing.T) {
			o := in.o.completed(nil, math.MaxInt64)
			var got []string
			for pair := range slices.Chunk(o.limitValues(), 2) {
				if _, text := pair[1].(string); !text {
					t.Errorf("%s is a %T, which logs show in different ways", pair[0], pair[1])
				}
				got = append(got, fmt.Sprintf("%s=%s", pair...))
			}
			if strings.Join(got, " ") != in.want {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, " "), in.want)
			}
		})
	}
}
