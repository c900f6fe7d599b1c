// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// replay checks the stored cases of the run's kind.
func (r *run) replay(cases []*storedCase) {
	for _, c := range cases {
		if c.Case.Kind == r.Kind.GroupVersionKind && !r.Over() {
			r.report.Replayed = append(r.report.Replayed, r.replayCase(c))
		}
	}
}

// leftOut records the stored cases that the run did not check, as inconclusive. over is set if the run ended early.
func (r *Report) leftOut(cases []*storedCase, over bool) {
	for _, c := range cases {
		if !slices.ContainsFunc(r.Replayed, func(one Replayed) bool { return one.File == c.file }) {
			reason := &Reason{Code: ReasonKindNotTried, Kind: objects.NameOfKind(c.Case.Kind)}
			if over {
				reason = &Reason{Code: ReasonRunEnded}
			}
			r.Replayed = append(r.Replayed, Replayed{File: c.file, Law: c.Case.Law, Verdict: Inconclusive, Reason: reason})
		}
	}
}

// outdated lists the reasons why a stored case no longer applies: the webhook, its registration or the API has changed.
// A missing rival or option is not listed, because the options of this run may be incomplete.
var outdated = []ReasonCode{ReasonObjectRefused, ReasonLawNotApplied, ReasonEditGone}

// doubtReplays makes the run incomplete if a stored case could not be checked, because the webhook's author relies on
// that check. A case that no longer applies gets only a note.
func (r *Report) doubtReplays(o options) {
	for _, c := range r.Replayed {
		_, allowed := o.allows(c.Law)
		switch because := c.Reason; {
		case c.Verdict != Inconclusive || allowed || slices.Contains(o.without, c.Law):
		case slices.Contains(outdated, because.Code):
			r.Notes = append(r.Notes, Reason{Code: ReasonCaseOutdated, File: c.File, Because: []Reason{*because}})
		default:
			r.doubts = append(r.doubts, Reason{Code: ReasonCaseNotTried, File: c.File, Because: []Reason{*because}})
		}
	}
}

func (r *run) replayCase(stored *storedCase) Replayed {
	c := stored.Case
	result := Replayed{File: stored.file, Law: c.Law, Verdict: Inconclusive}
	if c.Law == L3 && c.Variant == Variant(laws.Few) && len(c.Before) == 0 {
		c.Variant = "" // a random difference may need more calls to appear again
	}
	inner := c.inner()
	x, valid := r.ObjectOf(inner)
	if manifest, ok := r.Kind.ManifestOf(c.Object); ok && laws.UsesManifest(inner.Variant) {
		x, valid = r.Valid(manifest) // the check uses the manifest, not the object
	}
	_, known := r.Rivals[c.Rival]
	switch {
	case slices.Contains(r.opts.without, c.Law):
		result.Reason = &Reason{Code: ReasonLawExcluded}
		return result
	case !valid:
		result.Reason = &Reason{Code: ReasonObjectRefused}
		return result
	case c.Rival != "" && !known:
		result.Reason = &Reason{Code: ReasonRivalMissing, Webhook: c.Rival}
		return result
	case c.Variant == Variant(laws.AnotherTime) && r.opts.bubble == nil:
		result.Reason = &Reason{Code: ReasonTimeGapsMissing}
		return result
	}
	r.CountObject(x)
	decided := r.Tally.Decided[inner.Law]
	f := r.Judge(r.Try(inner))
	if f != nil {
		exceptions := r.Exceptions
		f = r.WithoutDrawn(f, true)
		r.Exceptions = exceptions[:len(exceptions):len(exceptions)] // the run must find the random values itself
	}
	if f == nil {
		switch reason := r.verdicts().exempt(c.Law); {
		case r.Over():
			result.Reason = &Reason{Code: ReasonRunEnded}
			return result
		case reason != nil && r.Tally.Decided[inner.Law] == decided:
			result.Reason = &Reason{Code: ReasonLawNotApplied, Law: c.Law, Because: []Reason{*reason}}
			return result
		case r.Tally.Decided[inner.Law] == decided:
			result.Reason = &Reason{Code: ReasonEditGone}
		}
	}
	if f == nil || f.Advice {
		result.Verdict = Passes
		return result
	}
	if result.Verdict = Fails; c.Law == L3 {
		result.Verdict, r.Impure = Impure, true
	}
	if !slices.Contains(r.Tally.Modes[inner.Law], f.Mode) {
		r.Tally.Add(f, r.PlacesOf(f)...)
		v := violation(r.Checker, f)
		v.File = stored.file
		r.add(v)
	}
	return result
}
