// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/textutil"
)

// A Verdict is what was found out about a law.
type Verdict string

// The verdicts.
const (
	// Holds is a law that no case broke.
	Holds Verdict = "holds"
	// Violates is a law that is broken.
	Violates Verdict = "violates"
	// Impure is a webhook of which the answers to one request differ. What else it breaks is not
	// looked for.
	Impure Verdict = "impure"
	// Inconclusive is a law for which too little could be tried to tell.
	Inconclusive Verdict = "inconclusive"
	// Advice is what may be intended.
	Advice Verdict = "advice"
	// NotApplicable is a law that does not apply: by the registration, or because the webhook does
	// nothing that it is about.
	NotApplicable Verdict = "not applicable"
)

// A Report is what a run found out.
type Report struct {
	Webhooks []string `json:"webhooks"`
	Kinds    []string `json:"kinds"`
	Seed     int64    `json:"seed"`
	// Objects is how many valid objects were tried, Allowed how many of them the webhook allows,
	// and Changed how many it changes.
	Objects int `json:"objects"`
	Allowed int `json:"allowed"`
	Changed int `json:"changed"`
	Checks  int `json:"checks"`
	Calls   int `json:"calls"`
	// Laws are the verdicts, by kind of object and law.
	Laws []LawResult `json:"laws"`
	// Findings are what is to be mended, or thought about, the laws in order.
	Findings   []*Violation `json:"findings"`
	Exceptions []Exception  `json:"exceptions,omitempty"`
	// Replayed are the stored cases that were tried again.
	Replayed []Replayed `json:"replayed,omitempty"`
	// Notes are what the run could not do that does not touch the verdicts.
	Notes []string `json:"notes,omitempty"`
	// Incomplete says why the run cannot tell whether the webhook keeps the laws, or is empty.
	Incomplete string `json:"incomplete,omitempty"`
	// Again makes the same run: what differs from run to run, and the rest is in the code. It is empty
	// for the replay of a case.
	Again string `json:"again,omitempty"`

	doubts []string     // that make the run incomplete
	needed map[int]bool // which of the exceptions were
}

// A LawResult is the verdict about one law.
type LawResult struct {
	Law     Law     `json:"law"`
	Kind    string  `json:"kind"`
	Verdict Verdict `json:"verdict"`
	// Cases is how many cases were decided. One in which the API server refuses the input, or the webhook
	// is not called or denies x, tells nothing.
	Cases int `json:"cases"`
	// Reason says why a law is inconclusive or does not apply, or how far a verdict reaches.
	Reason string `json:"reason,omitempty"`
}

// A Replayed is a stored case that was tried again: the law holds now, or does not, or it is
// inconclusive.
type Replayed struct {
	File    string  `json:"file"`
	Law     Law     `json:"law,omitempty"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
}

// A Violation is a law that is broken, and the smallest case found that breaks it.
type Violation struct {
	Law     Law     `json:"law"`
	Kind    string  `json:"kind"`
	Way     string  `json:"way"`
	Verdict Verdict `json:"verdict"`
	// Summary says what happened, Cause what is likely behind it, Fix what usually helps.
	Summary string `json:"summary"`
	Cause   string `json:"cause"`
	Fix     string `json:"fix"`
	Case    Case   `json:"case"`
	Calls   []Call `json:"calls"`
	// Difference is between two objects that should be the same, if that is what is wrong.
	Difference *Difference `json:"difference,omitempty"`
	// File is where the case is stored, if it is, and Replay the line that tries it again.
	File   string `json:"file,omitempty"`
	Replay string `json:"replay,omitempty"`

	details func() // fills in what follows from the case
}

// A Call is one call of a webhook.
type Call struct {
	// Request is which API request the call was made for, counted from 1, and About what it
	// is about. One request may come to several calls.
	Request       int                   `json:"request"`
	About         string                `json:"about"`
	Webhook       string                `json:"webhook"`
	Operation     admissionv1.Operation `json:"operation"`
	DryRun        bool                  `json:"dryRun,omitempty"`
	ReviewVersion string                `json:"reviewVersion"`
	Object        json.RawMessage       `json:"object,omitempty"`
	Status        int                   `json:"status"`
	Response      Text                  `json:"response,omitempty"`
	Patch         json.RawMessage       `json:"patch,omitempty"`
	// Offending are the operations of the patch, counted from 0, that make the difference.
	Offending []int  `json:"offending,omitempty"`
	Outcome   string `json:"outcome"`

	broke bool // the connection
	late  bool // or not there at all, when the webhook's time was up
}

// Text is what came over the wire.
type Text []byte

// MarshalText writes the text as it is.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText reads it.
func (t *Text) UnmarshalText(text []byte) error {
	*t = append((*t)[:0], text...)
	return nil
}

// finish notes for the report what became of a call.
func (a *answer) finish() {
	if json.Valid(a.patch) {
		a.Patch = a.patch
	}
	switch {
	case a.fault != "":
		a.Outcome = "failed: " + textutil.FirstLine(a.fault)
	case !a.allowed:
		a.Outcome = "denied: " + a.message
	case len(a.patch) > 0:
		a.Outcome = "allowed, with a patch"
	default:
		a.Outcome = "allowed"
	}
}

func newReport(subject Subject, o options) *Report {
	r := &Report{Seed: o.seed, Exceptions: o.exceptions, Again: o.againLine(), needed: map[int]bool{}}
	for _, w := range subject.webhooks {
		r.Webhooks = append(r.Webhooks, w.Name)
	}
	return r
}

func (r *Report) found(v *Violation) {
	v.details()
	v.details = nil
	r.Findings = append(r.Findings, v)
}

// OK reports whether no law is broken. Advice is none.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(v *Violation) bool { return v.Verdict != Advice })
}
