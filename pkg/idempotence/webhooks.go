// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// servers holds one instance of each webhook of the subject.
type servers []caller

// fresh returns instances without earlier calls. Laws that are not about memory get used instances, because creating them may be
// slow.
func (r *run) fresh() servers {
	if r.law != "" && !slices.Contains(onAnyInstance, r.law) || r.unshared {
		return r.subject.servers()
	}
	if r.shared == nil {
		r.shared = r.subject.servers()
	}
	return slices.Clone(r.shared)
}

// onAnyInstance lists the laws that pass or fail in single calls. A violation on a used instance must also appear on a fresh
// one.
var onAnyInstance = []Law{L2, L8, L9, L10}

func (s Subject) servers() servers {
	all := make(servers, len(s.webhooks))
	for i, w := range s.webhooks {
		all[i] = w.fresh()
	}
	return all
}

// An outcome is F(x), the result of one API request.
type outcome struct {
	*answer           // of the last call, which decided
	calls   []*answer // all of them
	patched bool      // by any
}

// f computes F: it sends a request through the webhooks of the subject as the API server does.
func (r *run) f(s servers, q query) *outcome {
	if r.over() {
		return &outcome{answer: &answer{fault: "the run is over", faultOf: L2}}
	}
	if q.operation == "" {
		q.operation = r.operation
	}
	key, may := r.reusable(q)
	out := r.reuse.earlier[key]
	if !may || out == nil {
		out = r.request(s, q)
	}
	if may {
		r.reuse.now[key] = out
	}
	r.heard(q, out)
	return out
}

func (r *run) request(s servers, q query) *outcome {
	if q.operation == admissionv1.Update && q.old == nil {
		if q.old = r.kind.Old; q.old == nil {
			q.old = q.object
		}
	}
	out := &outcome{answer: &answer{allowed: true, after: q.object}}
	seen := make([]any, len(s)) // the object after the last call of each
	for round := range 2 {
		changed := false
		for i, w := range r.subject.webhooks {
			again := w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
			if !w.handles(r.kind, q.operation) || !w.selects(q.object, q.old) || !r.opts.places.selects(w, r.kind, &q) ||
				round > 0 && (!again || seen[i] == nil || tree.Equal(seen[i], q.object.Doc)) {
				continue
			}
			matches, err := w.matches(r.ctx, r.kind, &q)
			if err == nil && !matches {
				continue
			}
			if err == nil && q.dryRun && !w.dryRuns() {
				out.answer = &answer{message: fmt.Sprintf("admission webhook %q does not support dry run", w.Name)}
				return out
			}
			a := unmatched(w, err)
			if err == nil {
				a = r.ask(w, s[i], q)
			}
			out.answer, out.calls = a, append(out.calls, a)
			if a.fault != "" || !a.allowed {
				return out
			}
			out.patched = out.patched || len(a.patch) > 0
			changed = changed || len(a.patch) > 0
			if q.object = a.after; q.raw != nil {
				q.raw = a.patched // the next one sees all that was sent, too
			}
			if q.object != nil { // as there is in all but a DELETE
				seen[i] = q.object.Doc
			}
		}
		if !changed || len(s) == 1 {
			break // a webhook is called again when another changed something
		}
	}
	return out
}

// heard records that the webhook decided about x, or about an object that a law derived from x.
func (r *run) heard(q query, out *outcome) {
	switch {
	case len(out.calls) == 0 && r.plain > 0:
		r.other++ // its registration leaves out what became of x: so it changes nothing there
	case len(out.calls) == 0 || out.fault != "":
	case q.object == r.memo.object && q.raw == nil && !q.dryRun && q.operation == r.operation:
		r.plain++
	default:
		r.other++
	}
}

// ok reports whether the request was admitted without a failure.
func (o *outcome) ok() bool { return o.allowed && o.fault == "" }
