// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/admitkit/admitkit/pkg/review"
)

// A Report is the result of [Run].
type Report struct {
	// Read is the number of calls of the chosen webhooks. Same is the number of calls with equal answers, including those in
	// Notes. Changed is the number of calls in Changes.
	Read    int `json:"read"`
	Same    int `json:"same"`
	Changed int `json:"changed"`
	// Changes has one element for each cause. They are sorted by class, in the order of the constants, and then by the number
	// of calls. Notes has the differences of the class [Notes], which do not count as changes.
	Changes []Change `json:"changes"`
	Notes   []Change `json:"notes,omitempty"`
	// NotCompared counts the calls without a comparison, by reason. Excluded is the number of calls of other webhooks.
	NotCompared []Reason `json:"notCompared,omitempty"`
	Excluded    int      `json:"excluded,omitempty"`
	// Secrets is the number of compared calls with a secret in the answer that was not compared, for lack of the key.
	Secrets int `json:"secrets,omitempty"`
	// Before and After are the latencies of the compared calls. Without [Options].Old, Before was recorded, usually on
	// another machine.
	Before Latency `json:"latencyBefore"`
	After  Latency `json:"latencyAfter"`
	Files  []File  `json:"files"`

	changes  map[Change]*Change // by a Change without Calls and Example
	reasons  map[skipped]int
	old, new *hdrhistogram.Histogram
}

// A Change is a difference that one or more calls have for the same cause.
type Change struct {
	Class Class `json:"class"`
	// Webhook is the name of the webhook, or the path of its URL.
	Webhook   string `json:"webhook"`
	Resource  string `json:"resource"`
	Operation string `json:"operation"`
	// Cause says what differs. "…" stands for the name of an object.
	Cause   string  `json:"cause"`
	Calls   int     `json:"calls"`
	Example Example `json:"example"`
}

// An Example is the first call with a change.
type Example struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Object is the namespace and the name of the object, or its generateName.
	Object string `json:"object"`
	UID    string `json:"uid"`
	// Before and After are the decisions, or the values of the fields that differ.
	Before string `json:"before"`
	After  string `json:"after"`
}

// A Reason counts calls that were not compared.
type Reason struct {
	Reason string `json:"reason"`
	Calls  int    `json:"calls"`
}

// A Latency has percentiles of the durations of calls. In JSON, they are in nanoseconds.
type Latency struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

func newReport() *Report {
	histogram := func() *hdrhistogram.Histogram {
		return hdrhistogram.New(1, time.Minute.Microseconds(), 2) // in microseconds, to 1 percent
	}
	return &Report{changes: map[Change]*Change{}, reasons: map[skipped]int{}, old: histogram(), new: histogram()}
}

// The maximum numbers of causes, and of reasons, of a report. They bound the memory if each call has its own.
const (
	maxCauses  = 1000
	maxReasons = 100
)

// add adds the result of a call. Results are added in the order of the calls.
func (r *Report) add(one *result) {
	r.Read++
	if one.skipped != "" {
		reason := one.skipped
		if r.reasons[reason] == 0 && len(r.reasons) >= maxReasons {
			reason = "other reasons"
		}
		r.reasons[reason]++
		return
	}
	if one.hides {
		r.Secrets++
	}
	limit := time.Minute.Microseconds()
	_ = r.old.RecordValue(min(one.oldLatency.Microseconds(), limit)) // it is in the range
	_ = r.new.RecordValue(min(one.latency.Microseconds(), limit))
	if one.difference == nil {
		r.Same++
		return
	}
	d, req := one.difference, one.request
	key := Change{Class: d.class, Webhook: cmp.Or(one.call.Webhook, one.call.Path), Resource: resourceOf(req), Operation: string(req.Operation), Cause: d.cause}
	if r.changes[key] == nil && len(r.changes) >= maxCauses {
		key = Change{Class: d.class, Webhook: "several webhooks", Operation: "several operations", Resource: "of several resources", Cause: "one of many other causes"}
	}
	c := r.changes[key]
	if c == nil {
		own := key
		c = &own
		c.Example = Example{File: one.place.file, Line: one.place.line, Object: objectOf(req), UID: string(req.UID), Before: d.before, After: d.after}
		r.changes[key] = c
	}
	c.Calls++
	if d.class == Notes {
		r.Same++
	} else {
		r.Changed++
	}
}

// finish completes the report after the last call.
func (r *Report) finish() *Report {
	r.Changes = []Change{}
	for _, c := range r.changes {
		if c.Class == Notes {
			r.Notes = append(r.Notes, *c)
		} else {
			r.Changes = append(r.Changes, *c)
		}
	}
	slices.SortFunc(r.Changes, compareChanges)
	slices.SortFunc(r.Notes, compareChanges)
	for reason, calls := range r.reasons {
		r.NotCompared = append(r.NotCompared, Reason{string(reason), calls})
	}
	slices.SortFunc(r.NotCompared, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Reason, b.Reason))
	})
	r.Before, r.After = latencyOf(r.old), latencyOf(r.new)
	return r
}

func compareChanges(a, b Change) int {
	return cmp.Or(
		cmp.Compare(slices.Index(classes, a.Class), slices.Index(classes, b.Class)), cmp.Compare(b.Calls, a.Calls),
		cmp.Compare(a.Webhook, b.Webhook), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Cause, b.Cause),
	)
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(percent float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(percent)) * time.Microsecond
	}
	return Latency{P50: at(50), P99: at(99), Max: time.Duration(h.Max()) * time.Microsecond}
}

// Compared returns the number of calls that were compared.
func (r *Report) Compared() int { return r.Same + r.Changed }

// resourceOf returns a resource such as pods/ephemeralcontainers or deployments.apps.
func resourceOf(req *review.Request) string {
	name := req.Resource.Resource
	if req.Resource.Group != "" {
		name += "." + req.Resource.Group
	}
	if req.SubResource != "" {
		name += "/" + req.SubResource
	}
	return name
}

// objectOf returns the namespace and the name of the object.
func objectOf(req *review.Request) string {
	name := cmp.Or(req.Name, "(generated name)")
	if req.Namespace == "" {
		return name
	}
	return req.Namespace + "/" + name
}
