// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitsForCaches waits for caches that sync after some time, or never. A long wait is announced once.
func TestWaitsForCaches(t *testing.T) {
	for _, c := range []struct {
		synced     time.Duration
		log, fails string
	}{
		{synced: time.Second},
		{synced: 5 * time.Second, log: "the new hooks answer when they are ready, or not at all after 30s: namespaces have not synced\n"},
		{synced: time.Hour, log: "the new hooks answer", fails: "the hooks were not ready after 30s: namespaces have not synced: check that the program has the RBAC rules"},
	} {
		t.Run(c.synced.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				hooks := &hookList{ready: func(context.Context) error {
					if time.Since(start) < c.synced {
						return errors.New("namespaces have not synced")
					}
					return nil
				}}
				var log strings.Builder
				err := hooks.waitReady(t.Context(), &log)
				if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("waitReady returned %v, want %q", err, c.fails)
				}
				if !strings.HasPrefix(log.String(), c.log) || strings.Count(log.String(), "\n") != min(len(c.log), 1) {
					t.Errorf("the log is %q, want %q once", log.String(), c.log)
				}
			})
		})
	}
}
