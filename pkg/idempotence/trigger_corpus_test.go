// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/test/corpus"
)

// TestTriggers tests webhooks that change only some objects. The harness must report their triggers and flag none of
// them. Without a sample, it must find those that are Findable, and at least half of all. The test logs a table of the
// results.
func TestTriggers(t *testing.T) {
	cases := corpus.Triggered()
	on, lines := 0, []string{}
	for _, c := range cases {
		with := runCase(t, c.Case, Options{Objects: 24})
		if got := conditionsOf(with); !slices.Contains(got, c.Trigger) {
			t.Errorf("%s: the triggers are %q, want %q", c.Name, got, c.Trigger)
		}
		if 3*with.Changed < 2*with.Objects {
			t.Errorf("%s: with its sample, only %d of %d objects are changed", c.Name, with.Changed, with.Objects)
		}
		if !with.OK() || len(with.Incomplete) > 0 {
			t.Errorf("%s: a correct webhook is flagged:\n%s", c.Name, text(with))
		}
		alone := c.Case
		alone.Samples = c.Unchanged
		without := runCase(t, alone, Options{Objects: 12})
		found := without.Changed > 0 && len(without.Triggers) > 0
		if found {
			on++
		}
		if c.Findable && !found {
			t.Errorf("%s: not switched on without a sample:\n%s", c.Name, text(without))
		}
		if !without.OK() {
			t.Errorf("%s: without its sample, a correct webhook is flagged:\n%s", c.Name, text(without))
		}
		lines = append(lines, fmt.Sprintf("%-45s %2d of %2d   %2d of %2d   %s", c.Name, with.Changed, with.Objects, without.Changed, without.Objects, strings.Join(conditionsOf(without), "; ")))
	}
	t.Logf("objects changed with a sample, and without:\n%s\n%d of %d are switched on without a sample", strings.Join(lines, "\n"), on, len(cases))
	if 2*on < len(cases) {
		t.Errorf("only %d of %d webhooks are switched on without a sample", on, len(cases))
	}
}

// conditionsOf returns the conditions of each trigger, joined by "and".
func conditionsOf(r *Report) (all []string) {
	for _, trigger := range r.Triggers {
		var texts []string
		for _, c := range trigger.Conditions {
			texts = append(texts, c.Text)
		}
		all = append(all, strings.Join(texts, " and "))
	}
	return all
}
