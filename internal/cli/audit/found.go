// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/patch"
)

// An Example is a request that shows a finding.
type Example struct {
	AuditID string    `json:"auditID"`
	Time    time.Time `json:"time"`
	Verb    string    `json:"verb"`
	Object  string    `json:"object"`
	User    string    `json:"user"`
	Code    int       `json:"code,omitempty"`
	DryRun  bool      `json:"dryRun,omitempty"`
	// Milliseconds is the time in webhooks, where that is what the finding is about.
	Milliseconds int64         `json:"milliseconds,omitempty"`
	Calls        []ExampleCall `json:"calls,omitempty"`
	// Message is the answer, if the request was rejected.
	Message string `json:"message,omitempty"`
}

// An ExampleCall is a call of a mutating webhook in an example.
type ExampleCall struct {
	Round         int    `json:"round"`
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Mutated       bool   `json:"mutated"`
	FailedOpen    bool   `json:"failedOpen,omitempty"`
	// Operations are those of its patch, shortened; what looks like a secret is left out.
	Operations []string `json:"operations,omitempty"`
}

// How much of examples is kept.
const (
	mostExamples   = 3
	mostCalls      = 8
	mostOperations = 8
	mostText       = 120 // of an operation
	mostMessage    = 320
)

// A foundKey is what a finding is about: requests that agree in it are one finding.
type foundKey struct {
	rule   string
	a, b   hook
	detail string
}

// A found is a finding in the making.
type found struct {
	count    int
	rejected int // of these
	longest  time.Duration
	hooks    []hook
	examples []Example
}

// add counts a request and keeps it as an example if it is one of the longest, or else of the first.
func (f *found) add(q *request, took time.Duration, calls ...*call) {
	f.count++
	if q.code >= 400 || q.panicked {
		f.rejected++
	}
	f.longest = max(f.longest, took)
	f.examples = keep(f.examples, q, took, calls)
}

// keep adds an example where it belongs, if it belongs there: what takes longest comes first, then
// what came first.
func keep(all []Example, q *request, took time.Duration, calls []*call) []Example {
	e := Example{AuditID: q.auditID, Time: q.time, Milliseconds: took.Milliseconds(), Verb: q.verb, Object: q.object.String()}
	at, _ := slices.BinarySearchFunc(all, e, compareExamples)
	if at >= mostExamples {
		return all
	}
	e.User, e.DryRun, e.Code = q.user, q.dryRun, q.code
	if q.code >= 400 {
		e.Message = clip(q.message, mostMessage)
	}
	for _, c := range calls[:min(len(calls), mostCalls)] {
		e.Calls = append(e.Calls, q.example(c))
	}
	if all = slices.Insert(all, at, e); len(all) > mostExamples {
		all = all[:mostExamples]
	}
	return all
}

// answer is how the API server answered. If a webhook was passed over, somebody else's words say nothing of it.
func (e *Example) answer(rule string) string {
	switch {
	case e.Message == "":
		return ""
	case rule == failedOpen && e.Code == http.StatusGatewayTimeout: // it may be this webhook that took the request's time
		return fmt.Sprintf("%d: %s, perhaps for the time that this webhook took", e.Code, e.Message)
	case rule == failedOpen:
		return fmt.Sprintf("rejected with %d for another reason", e.Code)
	}
	return fmt.Sprintf("%d: %s", e.Code, e.Message)
}

func compareExamples(a, b Example) int {
	return cmp.Or(cmp.Compare(b.Milliseconds, a.Milliseconds), a.Time.Compare(b.Time),
		cmp.Compare(a.AuditID, b.AuditID), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Object, b.Object))
}

func (q *request) example(c *call) ExampleCall {
	shown := ExampleCall{Round: c.round, Configuration: c.hook.configuration, Webhook: c.hook.name, Mutated: c.mutated, FailedOpen: c.failedOpen}
	for i, op := range c.patch {
		if i == mostOperations {
			shown.Operations = append(shown.Operations, "…")
			break
		}
		shown.Operations = append(shown.Operations, q.operation(op))
	}
	return shown
}

// operation writes an operation in a line, but no secret.
func (q *request) operation(op patch.Operation) string {
	text := string(op.Op) + " " + string(op.Path)
	if op.From != "" {
		text += " from " + string(op.From)
	}
	switch {
	case len(op.Value) == 0:
	case q.secret(op) != "":
		text += " (hidden: it looks like a secret)"
	default:
		text += " " + string(op.Value)
	}
	return clip(text, mostText)
}

// clip bounds what is kept of a text, and keeps it on one line.
func clip(text string, most int) string {
	return printable(textutil.Clip(text, most))
}

// printable leaves out what could confuse a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return ' '
		}
		return r
	}, text)
}
