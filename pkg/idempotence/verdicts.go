// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/explore"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// enough is the number of changed objects, and of decided cases of a law, that a verdict requires.
const enough = 3

// add adds the results of a run for one kind to the report.
func (r *Report) add(of *run) {
	name := of.Kind.Name()
	r.Kinds = append(r.Kinds, name)
	r.Objects, r.Allowed, r.Changed = r.Objects+of.Tally.Objects, r.Allowed+of.Tally.Allowed, r.Changed+of.Tally.Changed
	r.Checks, r.Calls = r.Checks+of.Checks, r.Calls+of.Calls()
	r.Triggers = append(r.Triggers, triggersOf(name, of.Triggers)...)
	r.Patches, r.Denials = r.Patches+of.Behaviour.Patches(), r.Denials+of.Behaviour.Denials()
	r.Warnings += of.Behaviour.Warnings()
	for _, number := range slices.Sorted(maps.Keys(of.Refused)) {
		r.Notes = append(r.Notes, Reason{Code: ReasonSampleRefused, Kind: name, Count: number, Detail: of.Refused[number]})
	}
	if of.EndedAt > 0 {
		r.Notes = append(r.Notes, Reason{Code: ReasonNothingNew, Kind: name, Count: of.EndedAt, Of: of.opts.objects})
	}
	r.once = r.once || name == "v1 Pod" && of.Tally.Changed > 0 && of.Handles(admissionv1.Create) &&
		slices.ContainsFunc(of.Webhooks, (*session.Webhook).NeverReinvoked)
	if len(of.Filled) > 0 {
		r.Notes = append(r.Notes, Reason{Code: ReasonFilled, Names: slices.Sorted(maps.Keys(of.Filled))})
	}
	if len(of.Switches) > 0 {
		var names []string
		for _, s := range of.Switches {
			names = append(names, s.Key+"="+s.Value)
		}
		r.Notes = append(r.Notes, Reason{Code: ReasonSwitches, Kind: name, Names: names})
	}
	r.addUntried(of)
	decide := of.verdicts()
	for i := range of.Exceptions {
		r.needed[i] = r.needed[i] || of.Needed(i)
	}
	for _, law := range Laws {
		if of.opts.only != "" && of.Tally.Tried[laws.Law(law)] == 0 {
			continue
		}
		result := LawResult{Law: law, Kind: name, Cases: of.Tally.Decided[laws.Law(law)]}
		if result.Verdict, result.Reason = decide.verdict(law); result.Verdict == NotApplicable {
			result.Cases = 0 // L6 has cases for webhooks without UPDATE, too
		}
		r.Laws = append(r.Laws, result)
		if result.Verdict == Inconclusive {
			r.doubt(of, result)
		}
	}
}

// addUntried records what the webhook never changed in a run, although it changed other objects or containers.
func (r *Report) addUntried(of *run) {
	if of.opts.only != "" || of.Tally.Changed == 0 {
		return
	}
	name, inside := of.Kind.Name(), of.Behaviour.Inside
	if inside["containers"] && !inside["initContainers"] {
		r.Untried = append(r.Untried, Reason{Code: ReasonNoInitContainer, Kind: name})
	}
	if of.Handles(admissionv1.Update) && !of.Behaviour.Updates {
		r.Untried = append(r.Untried, Reason{Code: ReasonNoUpdate, Kind: name})
	}
}

// doubt makes the run incomplete because of an inconclusive law, unless an Allowance covers it.
func (r *Report) doubt(of *run, l LawResult) {
	allowance, allowed := of.opts.allows(l.Law)
	because := []Reason{*l.Reason}
	if searched := of.searched(); searched != nil && l.Reason.Code == ReasonChangedNone {
		because = append(because, *searched)
	}
	switch {
	case of.opts.only != "" || of.Impure || of.Over(): // the report already has a reason
	case allowed:
		r.Notes = addReason(r.Notes, Reason{Code: ReasonLawMayBeUnsure, Kind: l.Kind, Because: because, Detail: allowance})
	case l.Reason.Code == ReasonNoValidObject:
		r.doubts = addReason(r.doubts, Reason{Code: ReasonValidSampleNeeded, Kind: l.Kind, Because: because})
	case of.Tally.Changed < of.verdicts().needed():
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

// verdicts computes the verdict on each law for one kind of object.
type verdicts struct {
	tally   *explore.Tally
	impure  bool // equal requests had different results
	opts    *options
	updates bool // a webhook handles UPDATE
	dryRuns bool // the API server calls all webhooks in a dry run
	ended   bool // the run ended early
}

// verdicts returns the verdicts on the cases tried so far.
func (r *run) verdicts() *verdicts {
	return &verdicts{tally: &r.Tally, impure: r.Impure, opts: &r.opts, updates: r.Handles(admissionv1.Update), dryRuns: r.TakesDryRuns(), ended: r.Over()}
}

// needed returns the constant enough, or the number of objects if that is lower.
func (d *verdicts) needed() int { return min(enough, max(1, d.opts.objects)) }

// verdict returns the verdict on a law and the reason for it, which may be nil.
func (d *verdicts) verdict(law Law) (Verdict, *Reason) {
	switch reason := d.exempt(law); {
	case d.tally.Broken[laws.Law(law)] && law == L3:
		return Impure, nil
	case d.tally.Broken[laws.Law(law)]:
		return Fails, nil
	case reason != nil:
		return NotApplicable, reason
	}
	if reason := d.tooLittle(law); reason != nil {
		return Inconclusive, reason
	}
	if d.opts.only == "" && d.tally.Tried[laws.Law(law)] == 0 {
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

// nothingFor has the reasons why some laws may have no cases although the webhook changes objects.
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
	tried, decided := d.tally.Tried[laws.Law(law)], d.tally.Decided[laws.Law(law)]
	if d.opts.only != "" {
		return nil
	}
	switch {
	case d.impure && decided < d.needed():
		return &Reason{Code: ReasonImpure}
	case d.ended && min(decided, d.tally.Changed) < d.needed():
		return &Reason{Code: ReasonRunEnded}
	case d.tally.Objects == 0:
		return &Reason{Code: ReasonNoValidObject, Detail: d.tally.Refusal}
	case d.tally.Called == 0 && len(d.tally.SkipReasons) > 0:
		return &Reason{Code: ReasonNotCalled, Of: d.tally.Objects, Names: d.tally.SkipReasons}
	case d.tally.Changed == 0:
		return d.withDenials(Reason{Code: ReasonChangedNone, Of: d.tally.Objects})
	case d.tally.Changed < d.needed():
		return d.withDenials(Reason{Code: ReasonChangedFew, Count: d.tally.Changed, Of: d.tally.Objects})
	case tried > 0 && decided < min(d.needed(), tried):
		return &Reason{Code: ReasonFewCases, Count: decided, Of: tried}
	}
	return nil
}

// withDenials adds the number of denied objects and the first message to a reason.
func (d *verdicts) withDenials(reason Reason) *Reason {
	if d.tally.Denial != "" {
		reason.Denied, reason.Detail = d.tally.Objects-d.tally.Allowed, textutil.FirstLine(d.tally.Denial)
	}
	return &reason
}
