// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// dryRuns checks L7.
func (r *run) checkDryRun(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok || !r.takesDryRuns() {
		return nil
	}
	never := r.f(r.fresh(), query{object: x})
	s := r.fresh()
	before := r.observe()
	dry := r.f(s, query{object: x, dryRun: true})
	if after := r.observe(); !bytes.Equal(before, after) {
		return r.violation(c, FailureSideEffect, fmt.Sprintf("a dry run has an effect outside of the object: %s → %s", before, after), dry)
	}
	if v := r.sameAs(c, never, dry, "a dry run"); v != nil {
		return v
	}
	return r.sameAs(c, never, r.f(s, query{object: x}), "the call after a dry run")
}

// takesDryRuns reports whether the API server calls all webhooks in a dry run. It rejects a dry run that would need a webhook
// with side effects.
func (r *run) takesDryRuns() bool {
	return !slices.ContainsFunc(r.subject.webhooks, func(w *webhook) bool { return w.handles(r.kind, r.operation) && !w.dryRuns() })
}

// sameAs checks that two equivalent requests have the same result.
func (r *run) sameAs(c *Case, plain, other *outcome, what string) *Violation {
	switch {
	case r.tally.impure:
		return nil // the answer to one request may differ as much
	case plain.ok() != other.ok():
		return r.violation(c, FailureDecidesDifferently, fmt.Sprintf("the object is %s, but in %s it is %s", plain.verdict(), what, other.verdict()), plain, other)
	case !plain.ok():
		return nil
	}
	if changes := r.differences(c.Law, plain.after, other.after); len(changes) > 0 {
		return r.violation(c, FailureDiffers, what+" makes another object: "+summary(changes), plain, other)
	}
	return nil
}

// observe returns the state that the webhook writes outside of the object, from Options.Observe.
func (r *run) observe() []byte {
	if r.opts.observe == nil {
		return nil
	}
	text, err := json.Marshal(r.opts.observe())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// readsAll checks L8.
func (r *run) checkReviewVersions(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok {
		return nil
	}
	s := r.fresh()
	first := r.f(s, query{object: x})
	if first.fault != "" && first.faultOf == L8 {
		return r.violation(c, FailureEnvelope, "the API server cannot use the answer: "+first.fault, first)
	}
	if first.ok() {
		if again := r.f(s, query{object: first.after}); again.fault != "" && again.faultOf == L8 {
			return r.violation(c, FailureEnvelopeAgain, "the API server cannot use the answer to the next call: "+again.fault, first, again)
		}
	}
	for _, w := range r.subject.webhooks {
		versions := w.versions()
		if !r.opts.uses(reviewVersions) {
			versions = versions[:1]
		}
		for _, version := range versions {
			if v := r.readsVersion(c, x, first, r.fresh(), version); v != nil {
				return v
			}
		}
		if s := r.subject.servers(); len(versions) > 1 { // API servers of two versions call one instance
			for _, version := range slices.Backward(append(versions[:len(versions):len(versions)], versions...)) {
				if v := r.readsVersion(c, x, first, s, version); v != nil {
					return v
				}
			}
		}
	}
	if !r.opts.uses(otherEncodings) {
		return nil
	}
	return r.sameAs(c, first, r.f(r.fresh(), query{object: x, raw: otherwise(x.Doc)}), "another encoding of the object")
}

// readsVersion compares the result of a review in another version.
func (r *run) readsVersion(c *Case, x *objects.Object, first *outcome, s servers, version string) *Violation {
	out := r.f(s, query{object: x, version: version})
	if out.fault != "" && out.faultOf == L8 {
		return r.violation(c, FailureEnvelope, fmt.Sprintf("the API server cannot use the answer to a review of version %s: %s", version, out.fault), out)
	}
	return r.sameAs(c, first, out, "a review of version "+version)
}

// otherwise encodes a document differently: members in reverse order, white space, and escapes in annotations. Escapes are
// used only there, because the decoders of some types, such as Quantity, do not understand them.
func otherwise(v any) []byte {
	var out bytes.Buffer
	writeOtherwise(&out, v, false)
	return out.Bytes()
}

func writeOtherwise(out *bytes.Buffer, v any, escapes bool) {
	switch v := v.(type) {
	case map[string]any:
		out.WriteString("{ ")
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		slices.Reverse(names)
		for i, name := range names {
			if i > 0 {
				out.WriteString(" ,\n")
			}
			writeText(out, name, escapes)
			out.WriteString(" : ")
			writeOtherwise(out, v[name], escapes || name == "annotations")
		}
		out.WriteString("\t}")
	case []any:
		out.WriteString("[ ")
		for i, element := range v {
			if i > 0 {
				out.WriteString(" , ")
			}
			writeOtherwise(out, element, escapes)
		}
		out.WriteString(" ]")
	case string:
		writeText(out, v, escapes)
	default:
		out.Write(tree.Encode(v))
	}
}

// writeText writes a string and may write each letter e as an escape.
func writeText(out *bytes.Buffer, text string, escapes bool) {
	encoded := tree.Encode(text)
	if escapes && !bytes.ContainsRune(encoded, '\\') {
		encoded = bytes.ReplaceAll(encoded, []byte("e"), []byte(`\u0065`))
	}
	out.Write(encoded)
}
