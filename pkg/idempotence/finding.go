// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// violation converts a finding of package laws for the report. It adds the cause, the fix, the calls and the
// difference.
func violation(k *laws.Checker, f *laws.Finding) *Violation {
	v := &Violation{Law: Law(f.Case.Law), FailureMode: FailureMode(f.Mode), Verdict: Fails, Summary: f.Summary, Case: caseOf(&f.Case)}
	switch {
	case f.Advice:
		v.Verdict = Advice
	case v.Law == L3:
		v.Verdict = Impure
	}
	v.Kind = objects.NameOfKind(v.Case.Kind)
	words := explain(v.Law, v.FailureMode)
	v.Cause, v.Fix = words.cause, words.fix
	if v.FailureMode == FailureInvalid && v.Case.Old != nil { // usually because the webhook changed an immutable field
		update := explain(L6, "")
		v.Cause, v.Fix = update.cause, update.fix
	}
	if v.FailureMode == FailureServerError {
		sign, fix := howItFailed(f.Outcomes)
		v.Cause, v.Fix = sign+v.Cause, v.Fix+fix
	}
	for i, o := range f.Outcomes {
		for _, a := range o.Calls {
			call := exchangeOf(&a.Exchange)
			if call.Request = i + 1; i < len(words.requests) {
				call.About = words.requests[i]
			}
			v.Calls = append(v.Calls, call)
		}
	}
	if changes, ok := k.Differences(f); ok {
		v.Difference = newDifference(v, changes)
		v.mark(changes, len(f.Outcomes))
		v.deed, v.Proposed = deedOf(v, changes), proposed(v, changes)
	} else {
		v.markProblems(len(f.Outcomes))
		v.deed = deedOf(v, nil)
	}
	if f.OnCopies {
		v.onCopies = true
		v.Cause += " The API server calls this webhook only once for an object (CREATE only, reinvocationPolicy Never), so this happens only to copies of a result."
	}
	return v
}

func exchangeOf(e *session.Exchange) Exchange {
	return Exchange{Webhook: e.Webhook, Operation: e.Operation, DryRun: e.DryRun, ReviewVersion: e.ReviewVersion, Object: e.Object,
		Status: e.Status, Response: e.Response, Patch: e.Patch, Outcome: e.Outcome, broke: e.Broke}
}

// howItFailed returns a sentence on how the server failed, and one on how to fix that. Both may be empty.
func howItFailed(outcomes []*session.Outcome) (sign, fix string) {
	for _, o := range outcomes {
		for _, a := range o.Calls {
			switch {
			case a.Exchange.Broke:
				return "The server closed the connection without a response, which usually means that its handler panicked: its log has the trace. ", " Recover from panics, so that the answer says what failed."
			case a.Exchange.Status >= http.StatusBadGateway && a.Exchange.Status <= http.StatusGatewayTimeout:
				return fmt.Sprintf("HTTP %d usually comes from a proxy in front of the webhook, or from an overloaded server: look there first. ", a.Exchange.Status), ""
			case a.Exchange.Status == http.StatusInternalServerError:
				return fmt.Sprintf("The server answered with HTTP %d, which usually means that its handler returned an error or panicked: its log says which. ", a.Exchange.Status),
					" If the error means that the object is not allowed, deny the request: a hook of admitkit returns webhook.Deny for that."
			}
		}
	}
	return "", ""
}

// inSequence lists the failure modes for which only the last request caused the difference.
var inSequence = []FailureMode{FailureGrows, FailureChanges, FailureNeverSettles, FailureRemoves, FailureOverwrites, FailureRemovesSample, FailureNotTheSame, FailureLostByReplace, FailureRegenerates, FailureChangesWithName}

// mark fills Offending of the calls with the patch operations that cause the difference.
func (v *Violation) mark(changes []tree.Change, requests int) {
	for i := range v.Calls {
		c := &v.Calls[i]
		if slices.Contains(inSequence, v.FailureMode) && c.Request < requests {
			continue
		}
		c.eachOperation(func(n int, before, after any, _ string) {
			for _, did := range tree.Changes(before, after) {
				if slices.ContainsFunc(changes, func(d tree.Change) bool { return d.Path.HasPrefix(did.Path) || did.Path.HasPrefix(d.Path) }) {
					c.Offending = append(c.Offending, n)
					return
				}
			}
		})
	}
}

// markProblems fills Offending for the calls of the last request: with the patch operations that cannot be applied, and
// with those at a path that the API server names in its error.
func (v *Violation) markProblems(requests int) {
	paths := objects.ProblemPaths(v.Summary)
	for i := range v.Calls {
		c := &v.Calls[i]
		if c.Request < requests {
			continue
		}
		c.eachOperation(func(n int, _, after any, pointer string) {
			if after == nil || slices.ContainsFunc(paths, func(p string) bool {
				return strings.HasPrefix(p+"/", pointer+"/") || strings.HasPrefix(pointer+"/", p+"/")
			}) {
				c.Offending = append(c.Offending, n)
			}
		})
	}
}

// eachOperation applies the patch of a call one operation at a time. It calls visit with the index of the operation,
// the documents before and after it, and its path without a final "/-". If an operation cannot be applied, after is nil
// and eachOperation stops.
func (c *Exchange) eachOperation(visit func(n int, before, after any, pointer string)) {
	operations, err := jsonpatch.DecodePatch(c.Patch)
	if err != nil {
		return
	}
	raw := []byte(c.Object)
	before, err := tree.Decode(raw)
	if err != nil {
		return
	}
	for n, operation := range operations {
		pointer, _ := operation.Path()
		if raw, err = objects.ApplyPatch(jsonpatch.Patch{operation}, raw); err != nil {
			visit(n, before, nil, pointer)
			return
		}
		after, err := tree.Decode(raw)
		if err != nil {
			return
		}
		if parent, ok := strings.CutSuffix(pointer, "/-"); ok {
			pointer = parent
		}
		visit(n, before, after, pointer)
		before = after
	}
}

// A Difference lists the changes between two objects that should be equal.
type Difference struct {
	// From and To name the two objects.
	From    string   `json:"from"`
	To      string   `json:"to"`
	Changes []Change `json:"changes"`
}

// A Change is one part of a difference: at a field path, a value is added, removed, replaced, or moved within its
// list.
type Change struct {
	Kind string          `json:"kind"`
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

func newDifference(v *Violation, changes []tree.Change) *Difference {
	if len(changes) == 0 {
		return nil
	}
	d := &Difference{}
	told := explain(v.Law, v.FailureMode)
	d.From, d.To = told.from, told.to
	for _, c := range changes {
		change := Change{Kind: string(c.Kind), Path: c.Path.String()}
		if c.Kind != tree.Added {
			change.Old = tree.Encode(c.Old)
		}
		if c.Kind != tree.Removed {
			change.New = tree.Encode(c.New)
		}
		d.Changes = append(d.Changes, change)
	}
	return d
}
