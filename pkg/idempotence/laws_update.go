// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// The failure modes of L6.
const (
	olderObject Variant = "older object"
	deletion    Variant = "deletion"
	sameAgain   Variant = "same manifest again"
)

// updates checks L6.
func (r *run) checkUpdate(c *Case) *Violation {
	if c.Variant == sameAgain {
		return r.takesAgain(c)
	}
	x, ok := r.object(c)
	if !ok || !r.handles(admissionv1.Update) {
		return nil
	}
	defer r.asUpdate(nil)()
	if x, ok = r.valid(x.Doc); !ok {
		return nil
	}
	if c.Variant == deletion {
		return r.letsGo(c, x)
	}
	return r.leavesImmutable(c, x)
}

// leavesImmutable checks an update of an annotation of an object that is older than the webhook.
func (r *run) leavesImmutable(c *Case, x *objects.Object) *Violation {
	updated, ok := r.edited(x, []Edit{{What: Put, Path: edits.TouchedAnnotation, Value: "yes"}})
	if !ok || len(r.kind.UpdateProblems(updated, x)) > 0 {
		return nil
	}
	out := r.f(r.fresh(), query{operation: admissionv1.Update, object: updated, old: x})
	if v := r.failed(c, out); v != nil || !out.ok() {
		return v
	}
	if problems := r.kind.UpdateProblems(out.after, x); len(problems) > 0 {
		return r.violation(c, FailureImmutable, "an update of an annotation fails, because the webhook changes what must not change in an update: "+strings.Join(problems, "; "), out)
	}
	return nil
}

// letsGo checks the removal of the last finalizer of an object that is being deleted.
func (r *run) letsGo(c *Case, x *objects.Object) *Violation {
	const finalizer = "example.com/cleanup"
	old, ok := r.edited(x, []Edit{
		{What: Put, Path: edits.Metadata.Member("deletionTimestamp"), Value: "2026-01-02T03:04:05Z"},
		{What: Put, Path: edits.Finalizers, Value: []any{finalizer}},
	})
	if !ok {
		return nil
	}
	touched := r.f(r.fresh(), query{operation: admissionv1.Update, object: x, old: x})
	if !touched.ok() {
		return nil // it denies any update of the object
	}
	gone, ok := r.edited(old, []Edit{{What: Remove, Path: edits.Finalizers}})
	if !ok {
		return nil
	}
	out := r.f(r.fresh(), query{operation: admissionv1.Update, object: gone, old: old})
	if v := r.failed(c, out); v != nil {
		return v
	}
	switch {
	case out.fault == "" && !out.allowed:
		return r.violation(c, FailureBlocksDeletion, "the object cannot be deleted: the removal of its last finalizer is denied: "+out.message, out)
	case !out.ok():
		return nil
	}
	if problems := r.kind.UpdateProblems(out.after, old); len(problems) > 0 && len(r.kind.UpdateProblems(gone, old)) == 0 {
		return r.violation(c, FailureBlocksDeletion, "the object cannot be deleted: what the webhook makes of the removal of its last finalizer is refused: "+strings.Join(problems, "; "), out)
	}
	if tree.Has(out.after.Doc, edits.Finalizers.Element(tree.Identity(edits.Finalizers, finalizer), 0)) || addsFinalizer(gone, out.after) {
		return r.violation(c, FailureBlocksDeletion, "the object cannot be deleted: the webhook puts a finalizer on it while it goes", out)
	}
	return nil
}

func addsFinalizer(before, after *objects.Object) bool {
	for _, change := range tree.Changes(before.Doc, after.Doc) {
		if change.Path.HasPrefix(edits.Finalizers) {
			return true
		}
	}
	return false
}

// takesAgain checks that applying the object's manifest again changes nothing.
func (r *run) takesAgain(c *Case) *Violation {
	manifest, ok := r.kind.ManifestOf(c.Object)
	if !ok || !r.handles(admissionv1.Update) {
		return nil
	}
	created, ok := r.createdFrom(manifest)
	if !ok {
		return nil
	}
	defer r.asUpdate(nil)()
	s := r.fresh()
	stored, ok := r.settled(s, created)
	if !ok || r.appliesDifferently(manifest) {
		return nil
	}
	applied, ok := r.applied(manifest, stored.after)
	if !ok {
		return nil
	}
	out := r.f(s, query{object: applied, old: stored.after})
	if v := r.failed(c, out); v != nil {
		return v
	}
	refused := len(r.kind.UpdateProblems(applied, stored.after)) > 0
	switch {
	case out.fault == "" && !out.allowed && !refused:
		return r.violation(c, FailureDenied, "the manifest that made the object is denied when it is applied again: "+out.message, stored, out)
	case !out.ok() || refused && len(r.kind.UpdateProblems(out.after, stored.after)) > 0:
		return nil // the manifest cannot be applied
	}
	changes := slices.DeleteFunc(r.differences(c.Law, stored.after, out.after), func(d tree.Change) bool { return sameQuantity(d.Old, d.New) })
	if len(changes) > 0 {
		return r.violation(c, FailureNotTheSame, "applying the manifest again changes the object: "+summary(changes), stored, out)
	}
	return nil
}

// sameQuantity reports whether two strings are equal quantities, which an encoder may spell either way.
func sameQuantity(a, b any) bool {
	x, isText := a.(string)
	y, also := b.(string)
	if !isText || !also {
		return false
	}
	p, err := resource.ParseQuantity(x)
	q, other := resource.ParseQuantity(y)
	return err == nil && other == nil && p.Cmp(q) == 0
}

// applied returns the stored object after an apply of the manifest. The API server may still reject it.
func (r *run) applied(manifest any, stored *objects.Object) (*objects.Object, bool) {
	doc, ok := r.kind.Apply(manifest, stored.Doc)
	if !ok {
		return nil, false
	}
	o, err := r.kind.Object(r.kind.AsSent(doc, true))
	return o, err == nil
}

// appliesDifferently reports whether applying a manifest again changes the object even without the webhook: an apply merges
// list elements with the same name, for example variables.
func (r *run) appliesDifferently(manifest any) bool {
	plain, ok := r.valid(manifest)
	if !ok {
		return true
	}
	again, ok := r.applied(manifest, plain)
	return !ok || !tree.Equal(plain.Doc, again.Doc)
}

// createdFrom returns the stored object after the first apply of a manifest.
func (r *run) createdFrom(manifest any) (*objects.Object, bool) {
	create := r.operation
	r.operation = admissionv1.Create
	defer func() { r.operation = create }()
	x, ok := r.valid(manifest)
	if !ok || !r.handles(admissionv1.Create) {
		return x, ok
	}
	out := r.f(r.fresh(), query{object: x})
	if !out.ok() || len(r.kind.Problems(out.after)) > 0 {
		return nil, false
	}
	return out.after, true
}

// settled returns the object after an update without a change, in which the webhook may do what it did not do at
// creation.
func (r *run) settled(s servers, created *objects.Object) (*outcome, bool) {
	stored, ok := r.valid(created.Doc)
	if !ok {
		return nil, false
	}
	out := r.f(s, query{object: stored, old: stored})
	return out, out.ok() && len(r.kind.UpdateProblems(out.after, stored)) == 0
}

func (r *run) handles(operation admissionv1.Operation) bool {
	for _, w := range r.subject.webhooks {
		if w.handles(r.kind, operation) {
			return true
		}
	}
	return false
}
