// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/textutil"
)

// enough is the number of changed objects, and of decided cases of a law, that a verdict requires.
const enough = 3

// add adds the results for one kind.
func (r *Report) add(of *run) {
	name := kindName(of.kind.GroupVersionKind)
	r.Kinds = append(r.Kinds, name)
	r.Objects, r.Allowed, r.Changed = r.Objects+of.objects, r.Allowed+of.allowed, r.Changed+of.changed
	r.Checks, r.Calls = r.Checks+of.checks, r.Calls+of.calls
	for _, law := range Laws {
		if of.opts.only != "" && of.checksOf[law] == 0 {
			continue
		}
		result := LawResult{Law: law, Kind: name, Cases: of.decided[law]}
		result.Verdict, result.Reason = of.verdict(law)
		r.Laws = append(r.Laws, result)
		if result.Verdict == Inconclusive {
			r.doubt(of, result)
		}
	}
}

// doubt makes the run incomplete because of an inconclusive law, unless an Allowance covers it.
func (r *Report) doubt(of *run, l LawResult) {
	allowance, allowed := of.opts.allows(l.Law)
	because := []Reason{*l.Reason}
	switch {
	case of.opts.only != "" || of.impure || of.over(): // the report has another reason for it
	case allowed:
		r.Notes = addReason(r.Notes, Reason{Code: ReasonLawMayBeUnsure, Kind: l.Kind, Because: because, Detail: allowance})
	case of.changed < of.needed():
		r.doubts = addReason(r.doubts, Reason{Code: ReasonSamplesNeeded, Kind: l.Kind, Because: because})
	default:
		r.doubts = append(r.doubts, Reason{Code: ReasonLawUndecided, Kind: l.Kind, Law: l.Law, Because: because})
	}
}

// addReason appends a reason unless the list has it.
func addReason(list []Reason, reason Reason) []Reason {
	if slices.ContainsFunc(list, func(r Reason) bool { return reflect.DeepEqual(r, reason) }) {
		return list
	}
	return append(list, reason)
}

func addOnce(texts []string, text string) []string {
	if slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

// needed returns enough, or the number of objects if that is lower.
func (r *run) needed() int { return min(enough, max(1, r.opts.objects)) }

// verdict returns the verdict on a law, and a reason if it neither passes nor fails.
func (r *run) verdict(law Law) (Verdict, *Reason) {
	switch reason := r.exempt(law); {
	case r.broken[law] && law == L3:
		return Impure, nil
	case r.broken[law]:
		return Fails, nil
	case reason != nil:
		return NotApplicable, reason
	}
	if reason := r.tooLittle(law); reason != nil {
		return Inconclusive, reason
	}
	if r.opts.only == "" && r.checksOf[law] == 0 {
		if code, ok := nothingFor[law]; ok {
			return NotApplicable, &Reason{Code: code}
		}
		return NotApplicable, nil
	}
	if law == L7 && r.opts.observe == nil {
		return Passes, &Reason{Code: ReasonEffectsUnwatched}
	}
	return Passes, nil
}

// exempt returns why a law does not apply, or nil.
func (r *run) exempt(law Law) *Reason {
	switch {
	case slices.Contains(r.opts.without, law):
		return &Reason{Code: ReasonLawExcluded}
	case law == L6 && !r.handles(admissionv1.Update):
		return &Reason{Code: ReasonNoUpdateRule}
	case law == L7 && !r.takesDryRuns():
		return &Reason{Code: ReasonNoDryRun}
	}
	return nil
}

// nothingFor returns why a law has no cases although the webhook changes objects.
var nothingFor = map[Law]ReasonCode{
	L4a: ReasonNothingToEdit,
	L4b: ReasonNothingToAdd,
	L5:  ReasonNoParts,
	L9:  ReasonNoPlaceForField,
	L11: ReasonNoOtherWebhook,
	L12: ReasonNoOtherWebhook,
}

// tooLittle returns why a law is inconclusive, or nil.
func (r *run) tooLittle(law Law) *Reason {
	tried, decided := r.checksOf[law], r.decided[law]
	if r.opts.only != "" {
		return nil
	}
	switch {
	case r.impure && decided < r.needed():
		return &Reason{Code: ReasonImpure}
	case r.over() && min(decided, r.changed) < r.needed():
		return &Reason{Code: ReasonRunEnded}
	case r.objects == 0:
		return &Reason{Code: ReasonNoValidObject, Detail: r.refusal}
	case r.called == 0 && len(r.left) > 0:
		return &Reason{Code: ReasonNotCalled, Of: r.objects, Names: r.left}
	case r.changed == 0:
		return r.withDenials(Reason{Code: ReasonChangedNone, Of: r.objects})
	case r.changed < r.needed():
		return r.withDenials(Reason{Code: ReasonChangedFew, Count: r.changed, Of: r.objects})
	case tried > 0 && decided < min(r.needed(), tried):
		return &Reason{Code: ReasonFewCases, Count: decided, Of: tried}
	}
	return nil
}

// withDenials adds the number of denied objects and the first message to a reason.
func (r *run) withDenials(reason Reason) *Reason {
	if r.denial != "" {
		reason.Denied, reason.Detail = r.objects-r.allowed, textutil.FirstLine(r.denial)
	}
	return &reason
}

// finish records why the run is incomplete, and sorts the findings.
func (r *Report) finish(outer, ctx context.Context, o options, t *trouble) {
	r.doubtReplays(o)
	switch err := ctx.Err(); {
	case t.hung && outer.Err() == nil:
		r.Incomplete = []Reason{{Code: ReasonNoAnswer}}
	case err != nil && outer.Err() == nil && o.unlimited():
	case err != nil && outer.Err() == nil:
		r.Incomplete = []Reason{{Code: ReasonBudgetSpent, Limit: o.budget}}
	case errors.Is(err, context.Canceled):
		r.Incomplete = []Reason{{Code: ReasonInterrupted}}
	case err != nil:
		r.Incomplete = []Reason{{Code: ReasonEndedEarly, Detail: err.Error()}}
	case t.lost != nil:
		r.Incomplete = []Reason{{Code: ReasonServerLost, Because: []Reason{t.lost.Reason}}}
	default:
		r.Incomplete = r.doubts
	}
	r.repeated(t.repeats)
	if len(r.Incomplete) == 0 && r.ReplayOf == "" {
		r.notNeeded()
	}
	slices.SortStableFunc(r.Findings, func(a, b *Violation) int { return slices.Index(Laws, a.Law) - slices.Index(Laws, b.Law) })
}

// A few broken connections may be the network's fault. With more of them the run is incomplete: they
// break no law, because they are about no object, but the API server does not repeat a call.
const (
	fewRepeats     = 2
	callsPerRepeat = 100
)

// repeated reports the calls that had to be repeated.
func (r *Report) repeated(n int) {
	if n == 0 {
		return
	}
	laws := r.lawsWithBrokenConnections()
	if len(laws) > 0 || n <= fewRepeats || n*callsPerRepeat <= r.Calls {
		r.Notes = append(r.Notes, Reason{Code: ReasonCallsRepeated, Count: n, Names: laws})
		return
	}
	r.Incomplete = append(r.Incomplete, Reason{Code: ReasonBrokenConnections, Count: n, Of: r.Calls})
}

// lawsWithBrokenConnections names the laws whose findings show a broken connection.
func (r *Report) lawsWithBrokenConnections() (laws []string) {
	for _, v := range r.Findings {
		if slices.ContainsFunc(v.Calls, func(c Exchange) bool { return c.broke }) {
			laws = addOnce(laws, string(v.Law))
		}
	}
	return laws
}
