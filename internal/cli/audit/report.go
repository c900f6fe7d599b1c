// SPDX-License-Identifier: Apache-2.0

package audit

import "time"

// A Report is what audit logs tell of webhooks. It is written as JSON as it is.
type Report struct {
	Files []File `json:"files"`
	// Events is how many were read; Requests how many API requests of them ended, in the time that is
	// looked at; WithWebhooks in how many of these a webhook left a trace.
	Events       int `json:"events"`
	Requests     int `json:"requests"`
	WithWebhooks int `json:"withWebhooks"`
	// Duplicates is how many events of requests with webhooks were read more than once.
	Duplicates int `json:"duplicates"`
	// OutsideTime is how many requests were left out for their time.
	OutsideTime int        `json:"outsideTime"`
	First       *time.Time `json:"first,omitempty"`
	Last        *time.Time `json:"last,omitempty"`
	// Levels counts the requests with webhooks by the level at which they were logged.
	Levels     map[string]int `json:"levels"`
	Mutating   []Mutating     `json:"mutating"`
	Validating []Validating   `json:"validating"`
	// AuditAnnotations are those that webhooks (or policies of these names) added.
	AuditAnnotations []Annotation `json:"auditAnnotations"`
	// Latency is known of requests that took more than 500 ms.
	Latency  Latency   `json:"latency"`
	Findings []Finding `json:"findings"`
	// Hidden is how many findings there are beyond those that are listed.
	Hidden int      `json:"hidden,omitempty"`
	Notes  []string `json:"notes"`
	// Incomplete says what could not be read.
	Incomplete []string `json:"incomplete,omitempty"`
	// Top is how many rows of a table are shown to a person.
	Top int `json:"-"`
}

// A File tells how reading a log went.
type File struct {
	Name  string `json:"name"`
	Lines int    `json:"lines"`
	Bytes int64  `json:"bytes"`
	// Events is how many audit events it has.
	Events int `json:"events"`
	// Corrupt lines were skipped, and so were those that were too long.
	Corrupt int `json:"corrupt"`
	TooLong int `json:"tooLong"`
	// Skipped are the first of them.
	Skipped []SkippedLine `json:"skipped,omitempty"`
	// HalfWritten says that the last line was not written to its end yet.
	HalfWritten bool `json:"halfWritten,omitempty"`
}

// A SkippedLine is one that could not be read.
type SkippedLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Mutating is what a mutating webhook did.
type Mutating struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	// Calls in all, and of them those in round 1, when it was called again.
	Calls           int `json:"calls"`
	Reinvoked       int `json:"reinvoked"`
	Mutated         int `json:"mutated"`
	MutatedInRound1 int `json:"mutatedInRound1"`
	// Patches and their operations are known at level Request only.
	Patches    int `json:"patches"`
	Operations int `json:"operations"`
	FailedOpen int `json:"failedOpen"`
	// Failed counts the requests that were rejected because it failed, NoDryRun dry runs that were
	// rejected, Denied those that it denied.
	Failed   int `json:"failed"`
	NoDryRun int `json:"noDryRun"`
	Denied   int `json:"denied"`
	// Unclear says that Failed, NoDryRun and Denied may be those of a validating webhook of the same name.
	Unclear bool `json:"unclear,omitempty"`
	// SlowestMilliseconds is the longest time recorded for a request in which it was the only call.
	SlowestMilliseconds int64 `json:"slowestMilliseconds,omitempty"`
}

// Validating is what is recorded of a validating webhook: nothing of calls that it allowed.
type Validating struct {
	Webhook    string `json:"webhook"`
	FailedOpen int    `json:"failedOpen"`
	Failed     int    `json:"failed"`
	NoDryRun   int    `json:"noDryRun"`
	Denied     int    `json:"denied"`
}

// An Annotation is an audit annotation, and in how many requests it is.
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

// LatencyOf is the time spent in the webhooks of one kind.
type LatencyOf struct {
	Requests            int   `json:"requests"`
	LongestMilliseconds int64 `json:"longestMilliseconds"`
}

// A Finding is something that the log proves and somebody should know.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	// Webhooks are those that it is about, by name.
	Webhooks []Webhook `json:"webhooks"`
	// Detail says which: a field, a host, a list of webhooks.
	Detail  string `json:"detail,omitempty"`
	Summary string `json:"summary"`
	Fix     string `json:"fix"`
	// Requests is how many show it.
	Requests int `json:"requests"`
	// Rejected are those of the requests in which a webhook was passed over that were rejected all the same.
	Rejected            int   `json:"rejected,omitempty"`
	LongestMilliseconds int64 `json:"longestMilliseconds,omitempty"`
	// Objects are those that were changed most often, where that is what it is about.
	Objects  []ChangedObject `json:"objects,omitempty"`
	Examples []Example       `json:"examples"`
}

// A Webhook names a webhook; the configuration of validating ones is not in the log.
type Webhook struct {
	Configuration string `json:"configuration,omitempty"`
	Webhook       string `json:"webhook"`
}

// A ChangedObject is an object that a webhook changed more than once.
type ChangedObject struct {
	Object string `json:"object"`
	// Requests is in how many updates of it the webhook was called, Mutated in how many it changed it.
	Requests int `json:"requests"`
	Mutated  int `json:"mutated"`
	// SamePatch is how often the same patch was sent, 0 if patches are not recorded.
	SamePatch int      `json:"samePatch,omitempty"`
	Users     []string `json:"users"`
}

// Found reports whether a finding is more than advice.
func (r *Report) Found() bool {
	for _, f := range r.Findings {
		if f.Severity != Advice {
			return true
		}
	}
	return false
}
