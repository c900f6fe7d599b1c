// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A memo caches the results for the object of the current cases.
type memo struct {
	doc    any
	object *objects.Object
	first  *outcome // of the first call of a fresh instance
}

// object returns x of a case, or nil if it is not valid.
func (r *run) object(c *Case) (*objects.Object, bool) {
	if r.memo.object != nil && sameMap(c.Object, r.memo.doc) {
		return r.memo.object, true
	}
	x, ok := r.valid(c.Object)
	if ok {
		r.memo = memo{doc: c.Object, object: x}
	}
	return x, ok
}

// first returns F(x) of a fresh instance. L1 to L3 call the webhook anew; other laws use the cached result.
func (r *run) first(x *objects.Object) *outcome {
	if r.memo.object != x {
		return r.f(r.fresh(), query{object: x})
	}
	if r.memo.first == nil {
		r.memo.first = r.f(r.fresh(), query{object: x})
	}
	return r.memo.first
}

// checkSecondCall checks L1.
func (r *run) checkSecondCall(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	s := r.fresh()
	first := r.f(s, query{object: x})
	if !first.ok() {
		return nil
	}
	if problems := r.problems(c.Law, first.after); len(problems) > 0 {
		return r.refused(c, "", problems, first)
	}
	return r.unchanged(c, first, r.f(s, query{object: first.after}))
}

// unchanged checks that a call does not change the previous call's result.
func (r *run) unchanged(c *Case, before, again *outcome) *Violation {
	if !again.ok() {
		return nil // L2
	}
	changes := r.differences(c.Law, before.after, again.after)
	if r.tally.impure && changeMode(changes) != FailureGrows {
		return nil // the answer to one request may differ as much
	}
	if len(changes) > 0 {
		return r.violation(c, changeMode(changes), "the next call changes it again: "+summary(changes), before, again)
	}
	if again.patched && len(r.subject.webhooks) == 1 && tree.Equal(before.after.Doc, again.after.Doc) {
		return r.violation(c, FailureNoOpPatch, "the next call has nothing to do, but sends a patch: the API server counts that as a change and may call other webhooks again", before, again)
	}
	return nil
}

// changeMode returns how a result changes.
func changeMode(changes []tree.Change) FailureMode {
	for _, c := range changes {
		if c.Kind == tree.Added {
			return FailureGrows
		}
	}
	return FailureChanges
}

// summary describes the first few changes.
func summary(changes []tree.Change) string {
	var texts []string
	for i, c := range changes {
		if i == 3 {
			texts = append(texts, fmt.Sprintf("and %d more", len(changes)-3))
			break
		}
		switch text := fmt.Sprintf("%s is %s", c.Path, c.Kind); c.Kind {
		case tree.Replaced:
			texts = append(texts, fmt.Sprintf("%s: %s → %s", c.Path, brief(c.Old), brief(c.New)))
		default:
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

// brief returns a value as text, clipped for a sentence.
func brief(v any) string {
	text := string(tree.Encode(v))
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// checkNoFailure checks L2.
func (r *run) checkNoFailure(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	s := r.fresh()
	first := r.f(s, query{object: x})
	if v := r.failed(c, first); v != nil || !first.allowed || first.fault != "" {
		return v
	}
	again := r.f(s, query{object: first.after})
	if v := r.failed(c, again); v != nil {
		return v
	}
	if again.fault == "" && !again.allowed {
		return r.violation(c, FailureDenied, "it allows the object and then denies what it made of it: "+again.message, first, again)
	}
	return nil
}

// failed reports a call without a decision. Faults of the envelope belong to L8, faults of the patch to L10.
func (r *run) failed(c *Case, o *outcome) *Violation {
	if o.fault == "" || o.faultOf != L2 {
		return nil
	}
	return r.violation(c, FailureServerError, "the webhook fails: "+textutil.FirstLine(o.fault), o)
}

// repeats is the number of times that a request is sent to compare the responses. Go does not shuffle small maps evenly: one
// of the two orders of two keys appears in 88 % of the iterations.
const repeats = 110

// checkPure checks L3.
func (r *run) checkPure(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	if c.Variant == anotherTime {
		return r.checkLater(c, x)
	}
	same := r.fresh()
	first := r.f(same, query{object: x})
	if c.Variant == nextSecond {
		return r.checkNextSecond(c, x)
	}
	if c.Variant == withoutNamespace {
		return r.readsNamespace(c, x, first)
	}
	times := repeats
	if c.Variant == variantFew {
		times = 4
	}
	for i := range times {
		s, how := same, "sent again to the same instance"
		if i%2 == 1 && r.opts.uses(freshInstances) {
			s, how = r.fresh(), "sent to a fresh instance"
		}
		if len(c.Before) > 0 {
			how = "sent after other objects"
			s = r.fresh()
			for _, doc := range c.Before {
				if o, ok := r.valid(doc); ok {
					r.f(s, query{object: o})
				}
			}
		}
		r.checks++
		if v := r.sameAnswer(c, first, r.f(s, query{object: x}), how); v != nil {
			return v
		}
	}
	for i, w := range r.subject.webhooks {
		for _, replica := range w.replicas[min(1, len(w.replicas)):] {
			s := append(servers(nil), same...)
			s[i] = replica
			if v := r.sameAnswer(c, first, r.f(s, query{object: x}), "sent to another replica"); v != nil {
				return v
			}
		}
	}
	return nil
}

// withoutNamespace is a variant of L3 that finds webhooks which read metadata.namespace.
const withoutNamespace Variant = "without namespace"

// variantFew repeats a request only a few times.
const variantFew Variant = "few"

// readsNamespace compares with an object without metadata.namespace, as old API servers sent it.
func (r *run) readsNamespace(c *Case, x *objects.Object, first *outcome) *Violation {
	doc, ok := tree.Remove(x.Doc, edits.Metadata.Member("namespace"))
	if !ok || !first.ok() {
		return nil
	}
	out := r.f(r.fresh(), query{object: x, raw: tree.Encode(doc)})
	if out.ok() {
		changes := slices.DeleteFunc(r.differences(c.Law, first.after, out.after), func(c tree.Change) bool {
			return c.Path.String() == "metadata.namespace"
		})
		if len(changes) == 0 {
			return nil
		}
	}
	v := r.violation(c, FailureReadsNamespace, "the webhook reads metadata.namespace, which older API servers leave empty: use request.namespace", first, out)
	v.Verdict = Advice
	return v
}

// sameAnswer compares two responses to one request.
func (r *run) sameAnswer(c *Case, first, again *outcome, how string) *Violation {
	switch {
	case first.ok() != again.ok():
		return r.violation(c, FailureDecidesDifferently, fmt.Sprintf("the same request, %s, is %s the first time and %s the second", how, first.verdict(), again.verdict()), first, again)
	case !first.ok():
		return nil
	}
	if changes := r.differences(c.Law, first.after, again.after); len(changes) > 0 {
		return r.violation(c, FailureVaries, fmt.Sprintf("the same request, %s, makes another object: %s", how, summary(changes)), first, again)
	}
	return nil
}

func (o *outcome) verdict() string {
	switch {
	case o.fault != "":
		return "a failure (" + textutil.FirstLine(o.fault) + ")"
	case o.allowed:
		return "allowed"
	}
	return "denied (" + o.message + ")"
}

// sameMap reports whether two documents are the same map in memory.
func sameMap(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	return isMap && areMaps && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
}
