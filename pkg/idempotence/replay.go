// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// replay has the laws look at stored cases of the run's kind.
func (r *run) replay(cases []*storedCase) {
	for _, c := range cases {
		if c.Case.Kind == r.kind.GroupVersionKind && !r.over() {
			r.report.Replayed = append(r.report.Replayed, r.replayCase(c))
		}
	}
}

// leftOut notes the cases of kinds that the run did not come to.
func (r *Report) leftOut(cases []*storedCase) {
	for _, c := range cases {
		if !slices.ContainsFunc(r.Replayed, func(one Replayed) bool { return one.File == c.file }) {
			r.Replayed = append(r.Replayed, Replayed{File: c.file, Law: c.Case.Law, Verdict: Inconclusive,
				Reason: "the run has not come to objects of " + kindName(c.Case.Kind)})
		}
	}
}

func (r *run) replayCase(stored *storedCase) Replayed {
	c := stored.Case
	result := Replayed{File: stored.file, Law: c.Law, Verdict: Inconclusive}
	if c.Law == L3 && c.Way == "few" && len(c.Before) == 0 {
		c.Way = "" // what differs by chance may need more calls to be seen again
	}
	x, valid := r.object(&c)
	_, known := r.rivals[c.Rival]
	switch {
	case slices.Contains(r.opts.without, c.Law):
		result.Reason = "the law is left out"
		return result
	case !valid:
		result.Reason = "the API server does not accept its object"
		return result
	case c.Rival != "" && !known:
		result.Reason = "there is no other webhook " + c.Rival
		return result
	case c.Way == anotherTime && r.opts.bubble == nil:
		result.Reason = "it needs TimeGaps"
		return result
	}
	r.counted(x)
	r.checksOf[c.Law]++
	v := r.check(&c)
	if v == nil || v.Verdict == Advice {
		result.Verdict = Holds
		return result
	}
	if result.Verdict = Violates; c.Law == L3 {
		result.Verdict, v.Verdict, r.impure = Impure, Impure, true
	}
	if v.File = stored.file; !r.broken[c.Law] {
		r.broken[c.Law] = true
		r.report.found(v)
	}
	return result
}

// counted counts an object, and what the webhook does with it.
func (r *run) counted(x *object) {
	r.objects++
	if out := r.f(r.fresh(), query{object: x}); out.ok() {
		r.allowed++
		if !tree.Equal(out.after.doc, x.doc) {
			r.changed++
		}
	}
}
