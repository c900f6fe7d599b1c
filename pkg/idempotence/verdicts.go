// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/textutil"
)

// enough is how many objects a webhook has to change for a verdict, and how many cases of a law
// have to be decided.
const enough = 3

// AllowInconclusive declares that too little can be tried to tell, about some laws or, without any,
// about all of them, and why: such as a webhook that is switched on in another cluster only.
// Otherwise [Check] fails where a webhook changes too few of the objects, or too few cases of a law
// that applies can be decided. Mind that it makes a test pass that says little; a sample that switches
// the webhook on ([Samples]) is better. A run that ends early stays incomplete.
func AllowInconclusive(reason string, laws ...Law) Option {
	return func(o *options) {
		if reason == "" {
			o.errs = append(o.errs, errors.New("AllowInconclusive needs a reason"))
		}
		for _, law := range laws {
			if !slices.Contains(Laws, law) {
				o.errs = append(o.errs, fmt.Errorf("AllowInconclusive: there is no law %q", law))
			}
		}
		o.allowed = append(o.allowed, allowance{reason, laws})
	}
}

// An allowance is what AllowInconclusive was told.
type allowance struct {
	reason string
	laws   []Law
}

// allows returns the reason for which nothing needs to be known about a law.
func (o *options) allows(law Law) (reason string, ok bool) {
	for _, a := range o.allowed {
		if len(a.laws) == 0 || slices.Contains(a.laws, law) {
			return a.reason, true
		}
	}
	return "", false
}

// add takes in what a run has found out.
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

// doubt has a law that is inconclusive make the run so, unless that is allowed.
func (r *Report) doubt(of *run, l LawResult) {
	reason, allowed := of.opts.allows(l.Law)
	switch {
	case of.opts.only != "" || of.impure || of.over(): // which is told otherwise
	case allowed:
		r.Notes = addOnce(r.Notes, fmt.Sprintf("%s is inconclusive (%s), which is allowed: %s", l.Kind, l.Reason, reason))
	case of.changed < of.needed():
		r.doubts = addOnce(r.doubts, fmt.Sprintf("%s: %s: give samples that switch it on, see Samples, or say with AllowInconclusive why there are none", l.Kind, l.Reason))
	default:
		r.doubts = append(r.doubts, fmt.Sprintf("%s: %s: %s", l.Kind, l.Law, l.Reason))
	}
}

func addOnce(texts []string, text string) []string {
	if slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

// needed is enough, or as many as there were to be.
func (r *run) needed() int { return min(enough, max(1, r.opts.objects)) }

// verdict is what is known about a law, and why it is no more.
func (r *run) verdict(law Law) (Verdict, string) {
	switch reason := r.exempt(law); {
	case r.broken[law] && law == L3:
		return Impure, ""
	case r.broken[law]:
		return Violates, ""
	case reason != "":
		return NotApplicable, reason
	}
	if reason := r.tooLittle(law); reason != "" {
		return Inconclusive, reason
	}
	if r.opts.only == "" && r.checksOf[law] == 0 {
		return NotApplicable, nothingFor[law]
	}
	if law == L7 && r.opts.observe == nil {
		return Holds, "the answers agree; what the webhook writes elsewhere is not known without Observe"
	}
	return Holds, ""
}

// exempt says why a law does not apply.
func (r *run) exempt(law Law) string {
	switch {
	case slices.Contains(r.opts.without, law):
		return "left out with Without"
	case law == L6 && !r.handles(admissionv1.Update):
		return "the rules have no UPDATE"
	case law == L7 && !r.takesDryRuns():
		return "with these sideEffects, the API server rejects dry runs without calling the webhook"
	}
	return ""
}

// nothingFor says why a law has no cases although the webhook changes objects.
var nothingFor = map[Law]string{
	L4a: "the webhook adds nothing that others could edit",
	L4b: "there is nothing that others could add to these objects",
	L5:  "the webhook adds no parts that could be there already",
	L9:  "there is no place for a new field",
	L11: "there is no other webhook",
	L12: "there is no other webhook",
}

// tooLittle says why nothing can be said about a law.
func (r *run) tooLittle(law Law) string {
	tried, decided := r.checksOf[law], r.decided[law]
	if r.opts.only != "" {
		return ""
	}
	switch {
	case r.impure && decided < r.needed():
		return "not looked for in a webhook that is impure"
	case r.over() && min(decided, r.changed) < r.needed():
		return endedBefore
	case r.objects == 0:
		return strings.TrimSuffix("the API server would accept none of the objects that were made: "+r.refusal, ": ")
	case r.called == 0 && r.left != "":
		return fmt.Sprintf("the webhook was called for none of %s: %s", textutil.Count(r.objects, "object"), r.left)
	case r.changed == 0:
		return fmt.Sprintf("the webhook changed none of %s", textutil.Count(r.objects, "object")) + r.denials()
	case r.changed < r.needed():
		return fmt.Sprintf("the webhook changed only %d of %s", r.changed, textutil.Count(r.objects, "object")) + r.denials()
	case tried > 0 && decided < min(r.needed(), tried):
		return fmt.Sprintf("only %d of %s told something: in the others the API server refuses the input, or the webhook denies it", decided, textutil.Count(tried, "case"))
	}
	return ""
}

// denials says how many objects the webhook denies, and with what words.
func (r *run) denials() string {
	if r.denial == "" {
		return ""
	}
	return fmt.Sprintf(", and denied %d, such as: %s", r.objects-r.allowed, textutil.FirstLine(r.denial))
}

// finish says what keeps the run from telling.
func (r *Report) finish(outer, ctx context.Context, o options, t *trouble) {
	r.doubtReplays(o)
	switch err := ctx.Err(); {
	case t.hung && outer.Err() == nil:
		r.Incomplete = "the run ended early, because no call was answered"
	case err != nil && outer.Err() == nil:
		r.Incomplete = fmt.Sprintf("the run ended early, after its budget of %s: give it more with Budget, or take fewer Objects", o.budget)
	case errors.Is(err, context.Canceled):
		r.Incomplete = "the run was interrupted: this is what it knew by then"
	case err != nil:
		r.Incomplete = "the run ended early: " + err.Error()
	case t.lost != nil:
		r.Incomplete = "the run ended early, because a server went away: " + t.lost.Error()
	case len(r.doubts) > 0:
		r.Incomplete = strings.Join(r.doubts, "; ")
	}
	r.repeated(t.repeats)
	if r.Incomplete == "" && r.Again != "" {
		r.notNeeded()
	}
	slices.SortStableFunc(r.Findings, func(a, b *Violation) int { return slices.Index(Laws, a.Law) - slices.Index(Laws, b.Law) })
}

// A few connections that break are the network's business. More are the server's, and the API server makes no
// call again. That breaks no law, as it is about no object; but nobody can say that all is well.
const (
	fewRepeats     = 2
	callsPerRepeat = 100
)

// repeated tells of calls that were made again.
func (r *Report) repeated(n int) {
	if n == 0 {
		return
	}
	laws := r.brokenBy()
	if laws != "" || n <= fewRepeats || n*callsPerRepeat <= r.Calls {
		r.Notes = append(r.Notes, textutil.Count(n, "call")+" had to be made again, because the connection broke"+laws)
		return
	}
	doubt := fmt.Sprintf("%d of %s had to be made again, because the server broke the connection: the API server makes none again, and with failurePolicy Fail each of them is an error for a user",
		n, textutil.Count(r.Calls, "call"))
	r.Incomplete = strings.TrimPrefix(r.Incomplete+"; "+doubt, "; ")
}

// brokenBy names the laws whose findings show how connections break.
func (r *Report) brokenBy() string {
	var laws []string
	for _, v := range r.Findings {
		if slices.ContainsFunc(v.Calls, func(c Call) bool { return c.broke }) {
			laws = addOnce(laws, string(v.Law))
		}
	}
	if len(laws) == 0 {
		return ""
	}
	return ": see " + strings.Join(laws, ", ")
}
