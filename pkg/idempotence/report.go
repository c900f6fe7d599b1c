// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
)

// A Verdict is the result for one law.
type Verdict string

// The verdicts.
const (
	// Passes means that no case breaks the law.
	Passes Verdict = "passes"
	// Fails means that a case breaks the law.
	Fails Verdict = "fails"
	// Impure means that answers to the same request differ. Laws that need equal answers are not
	// checked.
	Impure Verdict = "impure"
	// Inconclusive means that too few cases could be decided.
	Inconclusive Verdict = "inconclusive"
	// Advice is the verdict of a finding about behaviour that may be intended. It is not a failure.
	Advice Verdict = "advice"
	// NotApplicable means that the law does not apply to the registration or to what the webhook does.
	NotApplicable Verdict = "not applicable"
)

// A Report has the results of a run.
type Report struct {
	Webhooks []string `json:"webhooks"`
	Kinds    []string `json:"kinds"`
	Seed     int64    `json:"seed"`
	// Objects is the number of valid objects, Allowed the number of these that the webhook allows,
	// and Changed how many it changes.
	Objects int `json:"objects"`
	// MaxObjects is the number of objects that were asked for, see Options.Objects.
	MaxObjects int `json:"maxObjects"`
	Allowed    int `json:"allowed"`
	Changed    int `json:"changed"`
	Checks     int `json:"checks"`
	Calls      int `json:"calls"`
	// Patches is the number of patches that differ in their operations or fields. Denials and Warnings are the numbers
	// of denials and warnings that differ in their messages. Names and numbers do not count as differences. All three
	// show how much of the webhook's behaviour the run has seen.
	Patches  int `json:"patches"`
	Denials  int `json:"denials"`
	Warnings int `json:"warnings"`
	// Triggers say which objects the webhook changes.
	Triggers []Trigger `json:"triggers,omitempty"`
	// Laws are the verdicts, by kind of object and law.
	Laws []LawResult `json:"laws"`
	// Findings are the broken laws and the advice, in the order of the laws.
	Findings   []*Violation `json:"findings"`
	Exceptions []Exception  `json:"exceptions,omitempty"`
	// Replayed are the stored cases that were tried again.
	Replayed []Replayed `json:"replayed,omitempty"`
	// Notes report limits of the run that do not affect the verdicts.
	Notes []Reason `json:"notes,omitempty"`
	// Untried are parts of objects that the webhook never changed in the run, although it changed similar ones. Whether
	// it treats them correctly is not known.
	Untried []Reason `json:"untried,omitempty"`
	// Incomplete are the reasons why the run cannot decide whether the webhook passes. It is empty for a
	// complete run.
	Incomplete []Reason `json:"incomplete,omitempty"`
	// ReplayOf is the file of the only case of the run, or empty: see Options.Replay.
	ReplayOf string `json:"replayOf,omitempty"`
	// Wording adapts the texts to the program that shows the report.
	Wording Wording `json:"-"`

	doubts []Reason     // reasons that make the run incomplete
	once   bool         // a webhook for Pods has the reinvocationPolicy Never
	needed map[int]bool // indexes of the exceptions that covered a change
}

// A LawResult is the verdict on one law for one kind of object.
type LawResult struct {
	Law     Law     `json:"law"`
	Kind    string  `json:"kind"`
	Verdict Verdict `json:"verdict"`
	// Cases is the number of decided cases. A case decides nothing if the API server rejects the input,
	// or if the webhook is not called or denies the object.
	Cases int `json:"cases"`
	// Reason says why a law is inconclusive or does not apply, or what a passing verdict does not
	// cover.
	Reason *Reason `json:"reason,omitempty"`
}

// A Replayed is the result of checking a stored case again: its law passes now, fails, or is inconclusive.
type Replayed struct {
	File    string  `json:"file"`
	Law     Law     `json:"law,omitempty"`
	Verdict Verdict `json:"verdict"`
	Reason  *Reason `json:"reason,omitempty"`
}

// A Violation is a law that fails, or advice about it, with the smallest case that was found.
type Violation struct {
	Law  Law    `json:"law"`
	Kind string `json:"kind"`
	// FailureMode says how the law fails.
	FailureMode FailureMode `json:"failureMode"`
	Verdict     Verdict     `json:"verdict"`
	// Summary says what happened, Cause the likely cause, and Fix the usual fix.
	Summary string     `json:"summary"`
	Cause   string     `json:"cause"`
	Fix     string     `json:"fix"`
	Case    Case       `json:"case"`
	Calls   []Exchange `json:"calls"`
	// Difference lists the changes between two objects that should be equal. It is nil if no objects were compared.
	Difference *Difference `json:"difference,omitempty"`
	// Group is the number of the cause, counted from 1. Findings with the same number most likely have one cause.
	Group int `json:"group,omitempty"`
	// Proposed are the exceptions that declare the finding as intended. It is empty if such behaviour cannot be
	// intended.
	Proposed []Exception `json:"proposed,omitempty"`
	// File is the file in which the case is stored, or empty. See [Report.ReplayLine].
	File string `json:"file,omitempty"`

	deed     []string // see deedOf
	onCopies bool     // advice only because the webhook sees only copies of its results: see laws.Finding
}

// An Exchange is one call of a webhook: its request and its response.
type Exchange struct {
	// Request is the number of the API request that caused the call, counted from 1. About describes that request. One
	// request may cause several calls.
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
	// Offending lists the operations of the patch, counted from 0, that cause the finding.
	Offending []int  `json:"offending,omitempty"`
	Outcome   string `json:"outcome"`

	broke bool // the connection broke
}

// Text is a response body as it was received.
type Text []byte

// MarshalText implements encoding.TextMarshaler. It returns the text unchanged.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Text) UnmarshalText(text []byte) error {
	*t = append((*t)[:0], text...)
	return nil
}

func newReport(subject Subject, o options) *Report {
	r := &Report{Seed: o.seed, MaxObjects: o.objects, Exceptions: o.exceptions, ReplayOf: o.only, needed: map[int]bool{}}
	r.Webhooks = subject.names()
	return r
}

// OK reports whether no law fails. Advice does not count.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(v *Violation) bool { return v.Verdict != Advice })
}

// A Wording adapts the texts of a report to the program that shows it. The texts of the zero value are for authors of
// Go tests.
type Wording struct {
	// Hints replace the default hints, which are for the author of a Go test.
	Hints Hints
	// RunAgain returns the line that repeats the run.
	RunAgain func(*Report) string
	// ReplayCase returns the line that replays a stored case.
	ReplayCase func(file string) string
	// Declare returns the line that declares an exception.
	Declare func(Exception) string
}

// Text returns the text of a reason in the report's wording.
func (r *Report) Text(reason Reason) string { return reason.Text(r.Wording.Hints) }

// Texts returns the texts of several reasons, separated by semicolons.
func (r *Report) Texts(reasons []Reason) string {
	return Reason{Because: reasons}.because(r.Wording.Hints)
}

// AgainLine returns the line that repeats the run. It is empty for the replay of one case.
func (r *Report) AgainLine() string {
	switch {
	case r.ReplayOf != "":
		return ""
	case r.Wording.RunAgain != nil:
		return r.Wording.RunAgain(r)
	}
	return fmt.Sprintf("idempotence.Options{Seed: %d, Objects: %d}", r.Seed, r.MaxObjects)
}

// ReplayLine returns the line that replays the case of a finding. It is empty if the case is not stored.
func (r *Report) ReplayLine(v *Violation) string {
	switch {
	case v.File == "":
		return ""
	case r.Wording.ReplayCase != nil:
		return r.Wording.ReplayCase(v.File)
	}
	return fmt.Sprintf("idempotence.Options{Replay: %q}", v.File)
}

// declaration returns the line that declares an exception.
func (r *Report) declaration(e Exception) string {
	if r.Wording.Declare != nil {
		return r.Wording.Declare(e)
	}
	return fmt.Sprintf("{Path: %q, Law: idempotence.%s, Reason: %q},", e.Path, e.Law, e.Reason)
}

// reasonText returns the text of a reason, or "" if the reason is nil.
func (r *Report) reasonText(reason *Reason) string {
	if reason == nil {
		return ""
	}
	return r.Text(*reason)
}

// worded returns a copy of the report for WriteJSON. Its reasons are encoded with their texts in the report's wording.
func (r *Report) worded() *Report {
	out := *r
	one := func(reason *Reason) *Reason {
		if reason == nil {
			return nil
		}
		worded := *reason
		worded.text = r.Text(worded)
		return &worded
	}
	all := func(list []Reason) (out []Reason) {
		for i := range list {
			out = append(out, *one(&list[i]))
		}
		return out
	}
	out.Notes, out.Untried, out.Incomplete = all(r.Notes), all(r.Untried), all(r.Incomplete)
	out.Laws, out.Replayed = slices.Clone(r.Laws), slices.Clone(r.Replayed)
	for i := range out.Laws {
		out.Laws[i].Reason = one(out.Laws[i].Reason)
	}
	for i := range out.Replayed {
		out.Replayed[i].Reason = one(out.Replayed[i].Reason)
	}
	return &out
}
