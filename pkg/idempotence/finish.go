// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// finish records why the run is incomplete, adds notes, and sorts the findings by law. outer is the context of the
// caller. ctx also ends when the budget is spent.
func (r *Report) finish(outer, ctx context.Context, o options, connection *session.Connection) {
	r.doubtReplays(o)
	switch err := ctx.Err(); {
	case connection.Hung && outer.Err() == nil:
		r.Incomplete = []Reason{{Code: ReasonNoAnswer}}
	case err != nil && outer.Err() == nil && o.unlimited():
	case err != nil && outer.Err() == nil:
		r.Incomplete = []Reason{{Code: ReasonBudgetSpent, Limit: o.budget}}
	case errors.Is(err, context.Canceled):
		r.Incomplete = []Reason{{Code: ReasonInterrupted}}
	case err != nil:
		r.Incomplete = []Reason{{Code: ReasonEndedEarly, Detail: err.Error()}}
	case connection.Lost != nil:
		lost := Reason{Code: ReasonServerLost, Because: []Reason{failureError(connection.Lost).Reason}}
		if connection.Crashed {
			lost.Detail = string(connection.LostOn)
		}
		r.Incomplete = []Reason{lost}
	default:
		r.Incomplete = r.doubts
	}
	r.repeated(connection.Repeated)
	if slow := connection.Slowest; slow.Took > 0 {
		r.Notes = append(r.Notes, Reason{Code: ReasonSlowCall, Limit: slow.Took, Detail: slow.Object})
	}
	if len(r.Incomplete) == 0 && r.ReplayOf == "" {
		r.notNeeded()
	}
	slices.SortStableFunc(r.Findings, func(a, b *Violation) int { return slices.Index(Laws, a.Law) - slices.Index(Laws, b.Law) })
	r.dropConsequences()
	r.group()
	r.advisePolicy()
}

// onReinvocation lists the laws that must pass before the reinvocationPolicy can be IfNeeded.
var onReinvocation = []Law{L1, L2, L3, L4a, L4b, L10, L11, L12}

// advisePolicy adds a note for a webhook with the reinvocationPolicy Never: either IfNeeded is safe, or some laws must
// pass first. With Never, the webhook does not change containers that other webhooks add later.
func (r *Report) advisePolicy() {
	if !r.once || r.ReplayOf != "" || len(r.Incomplete) > 0 {
		return
	}
	var names []string
	for _, v := range r.Findings {
		if (v.Verdict != Advice || v.onCopies) && slices.Contains(onReinvocation, v.Law) && !slices.Contains(names, string(v.Law)) {
			names = append(names, string(v.Law))
		}
	}
	if len(names) > 0 {
		r.Notes = append(r.Notes, Reason{Code: ReasonNotIfNeeded, Names: names})
		return
	}
	r.Notes = append(r.Notes, Reason{Code: ReasonSafeIfNeeded})
}

// If the server breaks a connection, the harness repeats the call. The network may cause a few such cases, so up to
// fewRepeats, or one in callsPerRepeat calls, are only a note in the report. With more, the run is incomplete: the API
// server does not repeat calls, so they would fail in a cluster. No law fails, because the objects did not cause the
// failures.
const (
	fewRepeats     = 2
	callsPerRepeat = 100
)

// repeated reports that n calls had to be repeated, as a note or as a reason why the run is incomplete.
func (r *Report) repeated(n int) {
	if n == 0 {
		return
	}
	names := r.lawsWithBrokenConnections()
	if len(names) > 0 || n <= fewRepeats || n*callsPerRepeat <= r.Calls {
		r.Notes = append(r.Notes, Reason{Code: ReasonCallsRepeated, Count: n, Names: names})
		return
	}
	r.Incomplete = append(r.Incomplete, Reason{Code: ReasonBrokenConnections, Count: n, Of: r.Calls})
}

// lawsWithBrokenConnections returns the laws that have a finding with a broken connection.
func (r *Report) lawsWithBrokenConnections() (names []string) {
	for _, v := range r.Findings {
		if !slices.Contains(names, string(v.Law)) && slices.ContainsFunc(v.Calls, func(c Exchange) bool { return c.broke }) {
			names = append(names, string(v.Law))
		}
	}
	return names
}

// notNeeded adds a note for each exception that covered no change. It skips exceptions for rivals, which have no path,
// and exceptions for laws without a verdict.
func (r *Report) notNeeded() {
	for i, e := range r.Exceptions {
		if !r.needed[i] && !strings.HasPrefix(e.Path, "rival:") && r.decided(e.Law) {
			r.Notes = append(r.Notes, Reason{Code: ReasonExceptionUnused, Path: e.Path, Law: e.Law, Detail: r.nearest(e)})
		}
	}
}

// decided reports whether law has a verdict. With law empty, it reports whether any law has one.
func (r *Report) decided(law Law) bool {
	return slices.ContainsFunc(r.Laws, func(l LawResult) bool {
		return (law == "" || l.Law == law) && l.Verdict != Inconclusive && l.Verdict != NotApplicable
	})
}
