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

// An Example is a request that shows the problem of a finding.
type Example struct {
	AuditID string    `json:"auditID"`
	Time    time.Time `json:"time"`
	Verb    string    `json:"verb"`
	Object  string    `json:"object"`
	User    string    `json:"user"`
	Code    int       `json:"code,omitempty"`
	DryRun  bool      `json:"dryRun,omitempty"`
	// Milliseconds is the time spent in webhooks, for findings about time.
	Milliseconds int64         `json:"milliseconds,omitempty"`
	Calls        []ExampleCall `json:"calls,omitempty"`
	// Message is the API server's message for a rejected request.
	Message string `json:"message,omitempty"`
}

// An ExampleCall is a call of a mutating webhook in an example.
type ExampleCall struct {
	Round         int    `json:"round"`
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Mutated       bool   `json:"mutated"`
	FailedOpen    bool   `json:"failedOpen,omitempty"`
	// Operations are the operations of the patch, shortened. Values that look like secrets are removed.
	Operations []string `json:"operations,omitempty"`
}

// These limits bound the size of examples.
const (
	mostExamples   = 3
	mostCalls      = 8
	mostOperations = 8
	mostText       = 120 // characters of an operation
	mostMessage    = 320
)

// A foundKey identifies a finding. Requests with the same key belong to one finding.
type foundKey struct {
	rule   string
	a, b   hook
	detail string
}

// A findingRow counts the requests of a finding, and keeps some as examples.
type findingRow struct {
	count    int
	rejected int // requests that were rejected although the failing webhook was ignored
	longest  time.Duration
	hooks    []hook
	examples []Example
}

// add counts a request. The parameter took is the time that the request spent in webhooks. add keeps the requests with
// the longest times as examples. Of two equal times, it prefers the earlier request.
func (f *findingRow) add(q *request, took time.Duration, calls ...*call) {
	f.count++
	if q.code >= 400 || q.panicked {
		f.rejected++
	}
	f.longest = max(f.longest, took)
	f.examples = keep(f.examples, q, took, calls)
}

// keep inserts an example into the sorted list all, and returns the first mostExamples elements. The requests that
// spent the most time in webhooks come first. Requests with equal times are sorted by the time of the request.
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

// answer returns the API server's answer. In a finding about an ignored webhook, it usually omits the message, because
// another webhook or the API server caused the rejection.
func (e *Example) answer(rule string) string {
	switch {
	case e.Message == "":
		return ""
	case rule == failedOpen && e.Code == http.StatusGatewayTimeout: // this webhook may have used up the time of the request
		return fmt.Sprintf("%d: %s, perhaps because this webhook took too long", e.Code, e.Message)
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

// operation formats an operation on one line, without secrets.
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

// clip shortens a text and puts it on one line.
func clip(text string, most int) string {
	return onOneLine(textutil.Clip(text, most))
}

// onOneLine replaces line breaks, and other characters that control a terminal, by spaces.
func onOneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return ' '
		}
		return r
	}, text)
}
