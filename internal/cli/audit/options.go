// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"
)

// Options select the requests and webhooks of the report.
type Options struct {
	// Since and Until limit the time of requests. The zero time means no limit.
	Since, Until time.Time
	// Webhooks limits the report to these webhooks: names, or configuration/name. Empty means all.
	Webhooks []string
	// Withheld limits the report to what hooks in the modes Warn and Shadow would have done.
	Withheld bool
	// Top limits the rows shown per table and the findings shown per rule.
	Top int
	// A request that spends Slow or longer in webhooks is a finding.
	Slow time.Duration
	// A webhook that changes one object in Again or more requests is a finding.
	Again int
}

// within reports whether a time is in [Since, Until).
func (o *Options) within(at time.Time) bool {
	return !at.Before(o.Since) && (o.Until.IsZero() || at.Before(o.Until))
}

// wants reports whether the report covers a webhook.
func (o *Options) wants(h hook) bool {
	return len(o.Webhooks) == 0 || slices.ContainsFunc(o.Webhooks, h.is)
}
