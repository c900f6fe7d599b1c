// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// checkUnknownFields checks L9. The case's edits add fields that no Go type has.
func (r *run) checkUnknownFields(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	known := r.first(x)
	if !known.ok() {
		return nil
	}
	doc := x.Doc
	for _, e := range c.Edits {
		if next, ok := e.Apply(doc); ok {
			doc = next
		}
	}
	out := r.f(r.fresh(), query{object: x, raw: tree.Encode(doc)})
	if out.fault != "" {
		return r.violation(c, FailureServerError, "the webhook fails when an object has a field that it does not know: "+textutil.FirstLine(out.fault), out)
	}
	if !out.allowed {
		return nil // a webhook may refuse what it cannot read
	}
	patched, err := tree.Decode(out.answer.patched)
	if err != nil {
		return nil
	}
	var rounded *Violation
	for _, e := range c.Edits {
		got, ok := tree.Get(patched, e.Path)
		if !tree.Has(doc, e.Path) || ok && tree.Equal(got, e.Value) || r.excepted(c.Law, e.Path) {
			continue
		}
		if !tree.Has(known.after.Doc, e.Path[:len(e.Path)-1]) {
			continue // it went with its element
		}
		if ok && sameAsFloats(got, e.Value) {
			rounded = r.violation(c, FailureRounds, "a large integer in a field that the webhook does not know is rounded: "+e.Path.String(), out)
			rounded.Verdict = Advice
			continue
		}
		return r.violation(c, FailureLoses, "a field that the webhook does not know is lost: "+e.Path.String(), out)
	}
	return rounded
}

// sameAsFloats reports whether two values are equal to a reader that reads all numbers as floats, as encoding/json does. Such
// a reader changes integers above 2^53.
func sameAsFloats(a, b any) bool {
	return tree.Equal(asFloats(a), asFloats(b))
}

func asFloats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = asFloats(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = asFloats(inner)
		}
		return out
	}
	return v
}

// checkPatch checks L10.
func (r *run) checkPatch(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	s := r.fresh()
	out := r.f(s, query{object: x})
	if out.fault != "" && out.faultOf == L10 {
		return r.violation(c, FailureDoesNotApply, "the API server cannot apply the answer: "+out.fault, out)
	}
	if !out.ok() {
		return nil
	}
	if again := r.f(s, query{object: out.after}); again.fault != "" && again.faultOf == L10 {
		return r.violation(c, FailureDoesNotApplyAgain, "the API server cannot apply the answer to the next call: "+again.fault, out, again)
	}
	if v := r.lost(c, x, out, ""); v != nil {
		return v
	}
	if out.patched && len(out.calls) == 1 && tree.Equal(x.Doc, out.after.Doc) {
		return r.violation(c, FailureNoOpPatch, "there is nothing to do, but the webhook sends a patch: the API server counts that as a change and may call other webhooks again", out)
	}
	return nil
}
