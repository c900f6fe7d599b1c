// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Report has the facts about webhooks from audit logs. Its JSON encoding is stable.
type Report struct {
	Files []File `json:"files"`
	// Events is the number of events read. Requests is the number of completed API requests in the selected time.
	// WithWebhooks is how many of these requests have a trace of a webhook.
	Events       int `json:"events"`
	Requests     int `json:"requests"`
	WithWebhooks int `json:"withWebhooks"`
	// Duplicates is the number of repeated events. Repeated events of requests without webhooks are not detected.
	Duplicates int `json:"duplicates"`
	// OutsideTime is the number of requests outside the selected time.
	OutsideTime int        `json:"outsideTime"`
	First       *time.Time `json:"first,omitempty"`
	Last        *time.Time `json:"last,omitempty"`
	// Levels counts the requests with webhooks by the level at which they were logged.
	Levels     map[string]int `json:"levels"`
	Mutating   []Mutating     `json:"mutating"`
	Validating []Validating   `json:"validating"`
	Policies   []PolicyCount  `json:"policies"`
	// AuditAnnotations are the annotations that webhooks added. They can include annotations of an admission policy if
	// its name looks like the name of a webhook.
	AuditAnnotations []Annotation `json:"auditAnnotations"`
	// Withheld are decisions of hooks in the modes Warn and Shadow, which had no effect.
	Withheld []Withheld `json:"withheld"`
	// Latency covers requests that spent more than 500 ms in webhooks. The log does not have the latency of others.
	Latency  Latency   `json:"latency"`
	Findings []Finding `json:"findings"`
	// Hidden is the number of findings that are not listed.
	Hidden int      `json:"hidden,omitempty"`
	Notes  []string `json:"notes"`
	// Incomplete lists the parts of logs that could not be read.
	Incomplete []string `json:"incomplete,omitempty"`
	// OnlyWithheld means that the report has no other facts about webhooks.
	OnlyWithheld bool `json:"-"`
	// Top is the maximum number of rows that a table shows.
	Top int `json:"-"`
}

// A File has statistics on a log that was read.
type File struct {
	Name  string `json:"name"`
	Lines int    `json:"lines"`
	Bytes int64  `json:"bytes"`
	// Events is the number of audit events.
	Events int `json:"events"`
	// Corrupt and TooLong are the numbers of skipped lines.
	Corrupt int `json:"corrupt"`
	TooLong int `json:"tooLong"`
	// Skipped has the first skipped lines.
	Skipped []SkippedLine `json:"skipped,omitempty"`
	// HalfWritten means that the last line was incomplete and skipped.
	HalfWritten bool `json:"halfWritten,omitempty"`
}

// A SkippedLine is a line that could not be read.
type SkippedLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Mutating has the counts of one mutating webhook.
type Mutating struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	// Calls counts all calls. Reinvoked counts the reinvocations, which are the calls in round 1.
	Calls           int `json:"calls"`
	Reinvoked       int `json:"reinvoked"`
	Mutated         int `json:"mutated"`
	MutatedInRound1 int `json:"mutatedInRound1"`
	// Patches and Operations are recorded only at level Request and above.
	Patches    int `json:"patches"`
	Operations int `json:"operations"`
	FailedOpen int `json:"failedOpen"`
	// Failed counts the requests that were rejected because the webhook failed. NoDryRun counts the dry runs that were
	// rejected because the webhook does not support them. Denied counts the requests that the webhook denied.
	Failed   int `json:"failed"`
	NoDryRun int `json:"noDryRun"`
	Denied   int `json:"denied"`
	// Unclear means that Failed, NoDryRun and Denied may belong to a validating webhook of the same name.
	Unclear bool `json:"unclear,omitempty"`
	// SlowestMilliseconds is the longest recorded time of a request in which only this webhook was called.
	SlowestMilliseconds int64 `json:"slowestMilliseconds,omitempty"`
}

// Validating has the counts of one validating webhook. The log does not record the calls that the webhook allowed.
type Validating struct {
	Webhook    string `json:"webhook"`
	FailedOpen int    `json:"failedOpen"`
	Failed     int    `json:"failed"`
	NoDryRun   int    `json:"noDryRun"`
	Denied     int    `json:"denied"`
}

// An Annotation is an audit annotation and the number of requests with it.
type Annotation struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Requests int    `json:"requests"`
}

// Latency is the time that requests spent in webhooks.
type Latency struct {
	Mutating   LatencyOf `json:"mutating"`
	Validating LatencyOf `json:"validating"`
}

// LatencyOf has the number of requests that spent more than 500 ms in webhooks of one type, mutating or validating, and
// the longest such time.
type LatencyOf struct {
	Requests            int   `json:"requests"`
	LongestMilliseconds int64 `json:"longestMilliseconds"`
}

// A Finding is a problem that the log proves.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	// Webhooks are the webhooks that the finding is about.
	Webhooks []Webhook `json:"webhooks"`
	// Detail is the field, the host or the webhooks that the finding is about.
	Detail  string `json:"detail,omitempty"`
	Summary string `json:"summary"`
	Fix     string `json:"fix"`
	// Requests is the number of requests with the problem.
	Requests int `json:"requests"`
	// Rejected counts the requests that were rejected although the failing webhook was ignored.
	Rejected            int   `json:"rejected,omitempty"`
	LongestMilliseconds int64 `json:"longestMilliseconds,omitempty"`
	// Objects are the objects changed most often, for findings about repeated changes.
	Objects  []ChangedObject `json:"objects,omitempty"`
	Examples []Example       `json:"examples"`
}

// A Webhook names a webhook. The log does not name the configuration of a validating webhook.
type Webhook struct {
	Configuration string `json:"configuration,omitempty"`
	Webhook       string `json:"webhook"`
}

// A ChangedObject is an object that a webhook changed more than once.
type ChangedObject struct {
	Object string `json:"object"`
	// Requests is the number of updates for which the webhook was called. Mutated counts those that it changed.
	Requests int `json:"requests"`
	Mutated  int `json:"mutated"`
	// SamePatch is how often the most frequent patch was sent, or 0 if patches are not recorded.
	SamePatch int      `json:"samePatch,omitempty"`
	Users     []string `json:"users"`
}

// Found reports whether at least one finding is an error or a warning. In a report with only withheld decisions, it
// reports whether a request would have been denied or would have failed.
func (r *Report) Found() bool {
	if r.OnlyWithheld {
		return slices.ContainsFunc(r.Withheld, func(w Withheld) bool { return w.Outcome != webhook.Mutated })
	}
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity != Advice })
}
