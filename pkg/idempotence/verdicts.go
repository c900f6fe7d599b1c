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
	r.Objects, r.Allowed, r.Changed = r.Objects+of.tally.objects, r.Allowed+of.tally.allowed, r.Changed+of.tally.changed
	r.Checks, r.Calls = r.Checks+of.checks, r.Calls+of.calls
	decide := of.verdicts()
	for _, law := range Laws {
		if of.opts.only != "" && of.tally.checksOf[law] == 0 {
			continue
		}
		result := LawResult{Law: law, Kind: name, Cases: of.tally.decided[law]}
		result.Verdict, result.Reason = decide.verdict(law)
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
	case of.opts.only != "" || of.tally.impure || of.over(): // the report has another reason for it
	case allowed:
		r.Notes = addReason(r.Notes, Reason{Code: ReasonLawMayBeUnsure, Kind: l.Kind, Because: because, Detail: allowance})
	case of.tally.changed < of.verdicts().needed():
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

// A verdicts value decides whether the laws pass for one kind.
type verdicts struct {
	tally   *tally
	opts    *options
	updates bool // a webhook handles UPDATE
	dryRuns bool // the API server calls all webhooks in a dry run
	ended   bool // the run ended early
}

// verdicts returns the verdicts on the cases tried so far.
func (r *run) verdicts() *verdicts {
	return &verdicts{tally: &r.tally, opts: &r.opts, updates: r.handles(admissionv1.Update), dryRuns: r.takesDryRuns(), ended: r.over()}
}

// needed returns enough, or the number of objects if that is lower.
func (d *verdicts) needed() int { return min(enough, max(1, d.opts.objects)) }

// verdict returns the verdict on a law, and a reason if it neither passes nor fails.
func (d *verdicts) verdict(law Law) (Verdict, *Reason) {
	switch reason := d.exempt(law); {
	case d.tally.broken[law] && law == L3:
		return Impure, nil
	case d.tally.broken[law]:
		return Fails, nil
	case reason != nil:
		return NotApplicable, reason
	}
	if reason := d.tooLittle(law); reason != nil {
		return Inconclusive, reason
	}
	if d.opts.only == "" && d.tally.checksOf[law] == 0 {
		if code, ok := nothingFor[law]; ok {
			return NotApplicable, &Reason{Code: code}
		}
		return NotApplicable, nil
	}
	if law == L7 && d.opts.observe == nil {
		return Passes, &Reason{Code: ReasonEffectsUnwatched}
	}
	return Passes, nil
}

// exempt returns why a law does not apply, or nil.
func (d *verdicts) exempt(law Law) *Reason {
	switch {
	case slices.Contains(d.opts.without, law):
		return &Reason{Code: ReasonLawExcluded}
	case law == L6 && !d.updates:
		return &Reason{Code: ReasonNoUpdateRule}
	case law == L7 && !d.dryRuns:
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
func (d *verdicts) tooLittle(law Law) *Reason {
	tried, decided := d.tally.checksOf[law], d.tally.decided[law]
	if d.opts.only != "" {
		return nil
	}
	switch {
	case d.tally.impure && decided < d.needed():
		return &Reason{Code: ReasonImpure}
	case d.ended && min(decided, d.tally.changed) < d.needed():
		return &Reason{Code: ReasonRunEnded}
	case d.tally.objects == 0:
		return &Reason{Code: ReasonNoValidObject, Detail: d.tally.refusal}
	case d.tally.called == 0 && len(d.tally.left) > 0:
		return &Reason{Code: ReasonNotCalled, Of: d.tally.objects, Names: d.tally.left}
	case d.tally.changed == 0:
		return d.withDenials(Reason{Code: ReasonChangedNone, Of: d.tally.objects})
	case d.tally.changed < d.needed():
		return d.withDenials(Reason{Code: ReasonChangedFew, Count: d.tally.changed, Of: d.tally.objects})
	case tried > 0 && decided < min(d.needed(), tried):
		return &Reason{Code: ReasonFewCases, Count: decided, Of: tried}
	}
	return nil
}

// withDenials adds the number of denied objects and the first message to a reason.
func (d *verdicts) withDenials(reason Reason) *Reason {
	if d.tally.denial != "" {
		reason.Denied, reason.Detail = d.tally.objects-d.tally.allowed, textutil.FirstLine(d.tally.denial)
	}
	return &reason
}

// finish records why the run is incomplete, and sorts the findings.
func (r *Report) finish(outer, ctx context.Context, o options, t *transportError) {
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
