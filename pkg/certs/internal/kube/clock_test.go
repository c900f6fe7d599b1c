// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"
)

func TestClockAhead(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(d) }
	rows := []struct {
		name           string
		sent, received time.Duration
		want           time.Duration
	}{
		{"the same second", 100 * time.Millisecond, 200 * time.Millisecond, 0},
		{"it may have been just before the next second", 990 * time.Millisecond, 1100 * time.Millisecond, 0},
		{"a slow answer", -5 * time.Second, 10 * time.Second, 0},
		{"behind", -time.Hour, -time.Hour + time.Second, -time.Hour + time.Second},
		{"ahead", time.Hour, time.Hour + time.Second, time.Hour - time.Second},
	}
	for _, row := range rows {
		if got := clockAhead(at(row.sent), at(row.received), at(0)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

// testClock compares clocks that are right, ahead or behind with the clock of a real API server. Ahead must return the
// difference, which comes from the Date header.
func testClock(t *testing.T, c testCluster) {
	namespace := c.Namespace(t)
	for _, ahead := range []time.Duration{0, 123 * time.Minute, -123 * time.Minute} {
		k, err := New(c.Config, func() time.Time { return time.Now().Add(ahead) }, namespace, "ca", testManager)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.ReadSecret(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := k.Ahead(); (got-ahead).Abs() > 15*time.Second || got.Abs() > ahead.Abs() { // a request may last until its timeout
			t.Errorf("the clock is %s ahead, got %s", ahead, got)
		}
	}
}
