// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRunRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst = true
		i, c := newFake(t, o, denying("one.example.com"))
		c.fails = 7
		start := time.Now()
		if err := i.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The retries take 1, 2, 4, 8, 16, 30 and 30 s. Then come three series of confirmations.
		if took := time.Since(start); took < 91*time.Second || took > 95*time.Second {
			t.Errorf("took %s", took)
		}
		if l := readLive(c.stored[validating]); !failsClosed(l.entry("one.example.com")) {
			t.Errorf("webhooks %v", l.entries)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	rows := map[string]func(*fakeCluster){
		"between two attempts": func(c *fakeCluster) { c.fails = 1 << 30 },
		"while it waits":       func(c *fakeCluster) { c.answer = func(int) string { return "absent" } },
	}
	for name, broken := range rows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i, c := newFake(t, options(), denying("one.example.com"))
				broken(c)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if err := i.Run(ctx); err != nil {
					t.Errorf("got %v", err)
				}
				if ctx.Err() == nil {
					t.Error("it ended before")
				}
			})
		})
	}
}

func TestRunLeavesANewerRevisionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Revision = 8
		newer, c := newFake(t, o, denying("one.example.com"))
		if err := newer.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.Revision = 7
		older, _ := newFake(t, o, denying("two.example.com"), labelling("three.example.com"))
		older.cluster = c
		if err := older.Apply(t.Context()); !errors.Is(err, ErrSuperseded) {
			t.Errorf("got %v", err)
		}
		if err := older.Run(t.Context()); err != nil || c.applies != 1 {
			t.Errorf("%v, %d applies", err, c.applies)
		}
	})
}

func TestApplyRetriesAfterConflict(t *testing.T) {
	i, c := newFake(t, options(), denying("one.example.com"))
	c.changes = attempts - 1
	if err := i.Apply(t.Context()); err != nil {
		t.Error(err)
	}
	c.changes = attempts
	if err := i.Apply(t.Context()); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
}

// TestApplyKeepsPromotedWebhooksClosed lets another replica call Promote after Apply has read failurePolicy Ignore.
// Apply must not set Ignore again.
func TestApplyKeepsPromotedWebhooksClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst = true
		i, c := newFake(t, o, denying("one.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.before = func() {
			if err := i.Promote(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l := readLive(c.stored[validating]); !failsClosed(l.entry("one.example.com")) {
			t.Errorf("webhooks %v", l.entries)
		}
	})
}
