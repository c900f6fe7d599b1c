// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// The ways to break L6.
const (
	olderObject = "older object"
	deletion    = "deletion"
	sameAgain   = "same manifest again"
)

// updates is L6.
func (r *run) updates(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok || !r.handles(admissionv1.Update) {
		return nil
	}
	switch c.Way {
	case olderObject:
		return r.leavesImmutable(c, x)
	case deletion:
		return r.letsGo(c, x)
	}
	return r.takesAgain(c, x)
}

var (
	metadata    = tree.Path{{Name: "metadata"}}
	annotations = metadata.Member("annotations")
	finalizers  = metadata.Member("finalizers")
)

// leavesImmutable updates an annotation of an object that is older than the webhook.
func (r *run) leavesImmutable(c *Case, x *object) *Violation {
	updated, ok := r.edited(x, []Edit{{What: Put, Path: annotations.Member("example.com/touched"), Value: "yes"}})
	if !ok || len(r.kind.updateProblems(updated, x)) > 0 {
		return nil
	}
	out := r.f(r.fresh(), query{operation: admissionv1.Update, object: updated, old: x})
	if v := r.failed(c, out); v != nil || !out.ok() {
		return v
	}
	if problems := r.kind.updateProblems(out.after, x); len(problems) > 0 {
		return r.violation(c, "immutable", "an update of an annotation fails, because the webhook changes what must not change in an update: "+strings.Join(problems, "; "), out)
	}
	return nil
}

// letsGo removes the last finalizer of an object that is being deleted.
func (r *run) letsGo(c *Case, x *object) *Violation {
	const finalizer = "example.com/cleanup"
	old, ok := r.edited(x, []Edit{
		{What: Put, Path: metadata.Member("deletionTimestamp"), Value: "2026-01-02T03:04:05Z"},
		{What: Put, Path: finalizers, Value: []any{finalizer}},
	})
	if !ok {
		return nil
	}
	touched := r.f(r.fresh(), query{operation: admissionv1.Update, object: x, old: x})
	if !touched.ok() {
		return nil // it denies any update of the object
	}
	gone, ok := r.edited(old, []Edit{{What: Remove, Path: finalizers}})
	if !ok {
		return nil
	}
	out := r.f(r.fresh(), query{operation: admissionv1.Update, object: gone, old: old})
	if v := r.failed(c, out); v != nil {
		return v
	}
	switch {
	case out.fault == "" && !out.allowed:
		return r.violation(c, "holds up", "the object cannot be deleted: the removal of its last finalizer is denied: "+out.message, out)
	case !out.ok():
		return nil
	}
	if problems := r.kind.updateProblems(out.after, old); len(problems) > 0 && len(r.kind.updateProblems(gone, old)) == 0 {
		return r.violation(c, "holds up", "the object cannot be deleted: what the webhook makes of the removal of its last finalizer is refused: "+strings.Join(problems, "; "), out)
	}
	if tree.Has(out.after.doc, finalizers.Element(tree.Identity(finalizers, finalizer), 0)) || addsFinalizer(gone, out.after) {
		return r.violation(c, "holds up", "the object cannot be deleted: the webhook puts a finalizer on it while it goes", out)
	}
	return nil
}

func addsFinalizer(before, after *object) bool {
	for _, change := range tree.Changes(before.doc, after.doc) {
		if change.Path.HasPrefix(finalizers) {
			return true
		}
	}
	return false
}

// takesAgain applies the manifest again that the object was created from.
func (r *run) takesAgain(c *Case, x *object) *Violation {
	s := r.fresh()
	stored := r.first(x)
	if !stored.ok() {
		return nil
	}
	// What an earlier operation did not do yet, an update of nothing does.
	settled := r.f(s, query{operation: admissionv1.Update, object: stored.after, old: stored.after})
	if !settled.ok() || len(r.kind.updateProblems(settled.after, stored.after)) > 0 {
		return nil
	}
	applied, ok := r.valid(overlay(settled.after.doc, x.doc))
	if !ok || len(r.kind.updateProblems(applied, settled.after)) > 0 {
		return nil // the manifest cannot be applied, webhook or not
	}
	out := r.f(s, query{operation: admissionv1.Update, object: applied, old: settled.after})
	if v := r.failed(c, out); v != nil {
		return v
	}
	switch {
	case out.fault == "" && !out.allowed:
		return r.violation(c, "denied", "the manifest that made the object is denied when it is applied again: "+out.message, stored, out)
	case !out.ok():
		return nil
	}
	if changes := r.differences(c.Law, settled.after, out.after); len(changes) > 0 {
		return r.violation(c, "not the same", "applying the manifest again changes the object: "+summary(changes), stored, out)
	}
	return nil
}

// overlay is what applying a manifest makes of a stored object: what the manifest says is set, the
// rest stays.
func overlay(stored, manifest any) any {
	tree.Leaves(manifest, func(p tree.Path, value any) {
		switch value.(type) {
		case map[string]any, []any:
			if tree.Has(stored, p) {
				return // an empty one says nothing about what is in it
			}
		}
		if next, ok := tree.Put(stored, p, value); ok {
			stored = next
		}
	})
	return stored
}

func (r *run) handles(operation admissionv1.Operation) bool {
	for _, w := range r.subject.webhooks {
		if w.handles(r.kind, operation) {
			return true
		}
	}
	return false
}
