// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
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
func (r *Report) leftOut(cases []*storedCase, over bool) {
	for _, c := range cases {
		if !slices.ContainsFunc(r.Replayed, func(one Replayed) bool { return one.File == c.file }) {
			reason := "the run has no objects of " + kindName(c.Case.Kind) + ": give one as a sample, or delete the file"
			if over {
				reason = endedBefore
			}
			r.Replayed = append(r.Replayed, Replayed{File: c.file, Law: c.Case.Law, Verdict: Inconclusive, Reason: reason})
		}
	}
}

const endedBefore = "the run ended before"

// doubtReplays has stored cases that could not be tried make the run incomplete: somebody relies on them.
func (r *Report) doubtReplays(o options) {
	for _, c := range r.Replayed {
		if _, allowed := o.allows(c.Law); c.Verdict == Inconclusive && !allowed && !slices.Contains(o.without, c.Law) {
			r.doubts = append(r.doubts, fmt.Sprintf("the stored case %s cannot be tried: %s", c.File, c.Reason))
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
	if manifest, ok := r.manifestOf(c.Object); ok && c.Way == sameAgain {
		x, valid = r.valid(manifest) // which has a name
	}
	_, known := r.rivals[c.Rival]
	switch {
	case slices.Contains(r.opts.without, c.Law):
		result.Reason = "the law is left out with Without"
		return result
	case !valid:
		result.Reason = "the API server does not accept its object any more: delete the file"
		return result
	case c.Rival != "" && !known:
		result.Reason = fmt.Sprintf("there is no other webhook %q any more: declare it with Rivals, or delete the file", c.Rival)
		return result
	case c.Way == anotherTime && r.opts.bubble == nil:
		result.Reason = "it was found with TimeGaps: give that option, or delete the file"
		return result
	}
	r.counted(x)
	r.checksOf[c.Law]++
	decided := r.decided[c.Law]
	v := r.check(&c)
	if v == nil {
		switch reason := r.exempt(c.Law); {
		case r.over():
			result.Reason = endedBefore
			return result
		case reason != "":
			result.Reason = fmt.Sprintf("%s does not apply any more (%s): delete the file", c.Law, reason)
			return result
		case r.decided[c.Law] == decided:
			result.Reason = "what it edits is not there any more, or the webhook is not called for it"
		}
	}
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
