// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// replay checks the stored cases of the run's kind.
func (r *run) replay(cases []*storedCase) {
	for _, c := range cases {
		if c.Case.Kind == r.kind.GroupVersionKind && !r.over() {
			r.report.Replayed = append(r.report.Replayed, r.replayCase(c))
		}
	}
}

// leftOut records the stored cases that the run did not check.
func (r *Report) leftOut(cases []*storedCase, over bool) {
	for _, c := range cases {
		if !slices.ContainsFunc(r.Replayed, func(one Replayed) bool { return one.File == c.file }) {
			reason := &Reason{Code: ReasonKindNotTried, Kind: kindName(c.Case.Kind)}
			if over {
				reason = &Reason{Code: ReasonRunEnded}
			}
			r.Replayed = append(r.Replayed, Replayed{File: c.file, Law: c.Case.Law, Verdict: Inconclusive, Reason: reason})
		}
	}
}

// doubtReplays makes the run incomplete if a stored case could not be checked, because its author relies on it.
func (r *Report) doubtReplays(o options) {
	for _, c := range r.Replayed {
		if _, allowed := o.allows(c.Law); c.Verdict == Inconclusive && !allowed && !slices.Contains(o.without, c.Law) {
			r.doubts = append(r.doubts, Reason{Code: ReasonCaseNotTried, File: c.File, Because: []Reason{*c.Reason}})
		}
	}
}

func (r *run) replayCase(stored *storedCase) Replayed {
	c := stored.Case
	result := Replayed{File: stored.file, Law: c.Law, Verdict: Inconclusive}
	if c.Law == L3 && c.Variant == variantFew && len(c.Before) == 0 {
		c.Variant = "" // what differs by chance may need more calls to be seen again
	}
	x, valid := r.object(&c)
	if manifest, ok := r.kind.ManifestOf(c.Object); ok && c.Variant == sameAgain {
		x, valid = r.valid(manifest) // which has a name
	}
	_, known := r.rivals[c.Rival]
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
	case c.Variant == anotherTime && r.opts.bubble == nil:
		result.Reason = &Reason{Code: ReasonTimeGapsMissing}
		return result
	}
	r.counted(x)
	r.tally.checksOf[c.Law]++
	decided := r.tally.decided[c.Law]
	v := r.check(&c)
	if v == nil {
		switch reason := r.verdicts().exempt(c.Law); {
		case r.over():
			result.Reason = &Reason{Code: ReasonRunEnded}
			return result
		case reason != nil:
			result.Reason = &Reason{Code: ReasonLawNotApplied, Law: c.Law, Because: []Reason{*reason}}
			return result
		case r.tally.decided[c.Law] == decided:
			result.Reason = &Reason{Code: ReasonEditGone}
		}
	}
	if v == nil || v.Verdict == Advice {
		result.Verdict = Passes
		return result
	}
	if result.Verdict = Fails; c.Law == L3 {
		result.Verdict, v.Verdict, r.tally.impure = Impure, Impure, true
	}
	if v.File = stored.file; !r.tally.broken[c.Law] {
		r.tally.broken[c.Law] = true
		r.report.found(v)
	}
	return result
}

// counted counts an object and the webhook's result for it.
func (r *run) counted(x *objects.Object) {
	r.tally.objects++
	if out := r.f(r.fresh(), query{object: x}); out.ok() {
		r.tally.allowed++
		if !tree.Equal(out.after.Doc, x.Doc) {
			r.tally.changed++
		}
	}
}
