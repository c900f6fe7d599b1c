// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"
)

// Options say what is looked at.
type Options struct {
	// Since and Until bound the time of requests; the zero time does not.
	Since, Until time.Time
	// Webhooks are those that the report is about, by name or as configuration/name; all if there are none.
	Webhooks []string
	// Top is how many rows a table shows and how many findings of a kind.
	Top int
	// Slow is from when on time spent in webhooks is a finding.
	Slow time.Duration
	// Again is from how many changes of the same object on a webhook changes it again and again.
	Again int
}

func (o *Options) limited() bool { return !o.Since.IsZero() || !o.Until.IsZero() }

// within reports whether a time is in [Since, Until).
func (o *Options) within(at time.Time) bool {
	return !at.Before(o.Since) && (o.Until.IsZero() || at.Before(o.Until))
}

// wants reports whether the report is about a webhook.
func (o *Options) wants(h hook) bool {
	return len(o.Webhooks) == 0 || slices.ContainsFunc(o.Webhooks, h.is)
}
