// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// updates checks L6: updates of older objects, deletions, and manifests that are applied again or replace the object.
type updates struct{ *Trial }

func (l updates) check(c *Case) *Finding {
	switch c.Variant {
	case SameAgain:
		return l.takesAgain(c)
	case Replaced:
		return l.takesReplacement(c)
	case ChangedValue:
		return l.keepsChange(c)
	case NoStatus:
		return l.readsStatus(c)
	}
	x, ok := l.ObjectOf(c)
	if !ok || !l.Handles(admissionv1.Update) {
		return nil
	}
	defer l.startUpdates(nil)()
	if x, ok = l.Valid(x.Doc); !ok {
		return nil
	}
	if c.Variant == Deletion {
		return l.letsGo(c, x)
	}
	return l.leavesImmutable(c, x)
}

// leavesImmutable checks that an object which is older than the webhook stays valid when a user updates an annotation.
func (l updates) leavesImmutable(c *Case, x *objects.Object) *Finding {
	updated, ok := l.Edited(x, []edits.Edit{{What: edits.Put, Path: edits.TouchedAnnotation, Value: "yes"}})
	if !ok || len(l.Kind.UpdateProblems(updated, x)) > 0 {
		return nil
	}
	out := l.F(l.Fresh(), session.Query{Operation: admissionv1.Update, Object: updated, Old: x})
	if v := l.failed(c, out); v != nil || !out.OK() {
		return v
	}
	if problems := l.onlyInUpdates(l.updateProblems(c.Law, out.After, x), x); len(problems) > 0 {
		return l.Finding(c, Immutable, "an update of an annotation fails, because the webhook changes immutable fields: "+strings.Join(problems, "; "), out)
	}
	return nil
}

// onlyInUpdates returns the problems of an update without those that the webhook also causes when it creates the object
// x. L1 reports these.
func (l updates) onlyInUpdates(problems []string, x *objects.Object) []string {
	if len(problems) == 0 {
		return nil
	}
	update := l.Operation
	l.Operation = admissionv1.Create
	defer func() { l.Operation = update }()
	created, ok := l.Valid(x.Doc)
	if !ok || !l.Handles(admissionv1.Create) {
		return problems
	}
	out := l.F(l.Fresh(), session.Query{Object: created})
	if !out.OK() {
		return problems
	}
	known := l.Kind.Problems(out.After)
	return slices.DeleteFunc(problems, func(p string) bool { return slices.Contains(known, p) })
}

// letsGo checks the removal of the last finalizer of an object that is being deleted.
func (l updates) letsGo(c *Case, x *objects.Object) *Finding {
	const finalizer = "example.com/cleanup"
	old, ok := l.Edited(x, []edits.Edit{
		{What: edits.Put, Path: edits.Metadata.Member("deletionTimestamp"), Value: "2026-01-02T03:04:05Z"},
		{What: edits.Put, Path: edits.Finalizers, Value: []any{finalizer}},
	})
	if !ok {
		return nil
	}
	touched := l.F(l.Fresh(), session.Query{Operation: admissionv1.Update, Object: x, Old: x})
	if !touched.OK() {
		return nil // the webhook denies any update of the object
	}
	gone, ok := l.Edited(old, []edits.Edit{{What: edits.Remove, Path: edits.Finalizers}})
	if !ok {
		return nil
	}
	out := l.F(l.Fresh(), session.Query{Operation: admissionv1.Update, Object: gone, Old: old})
	if v := l.failed(c, out); v != nil {
		return v
	}
	switch {
	case out.Fault == "" && !out.Allowed:
		return l.Finding(c, BlocksDeletion, "the object cannot be deleted: the removal of its last finalizer is denied: "+out.Message, out)
	case !out.OK():
		return nil
	}
	if problems := l.onlyInUpdates(l.updateProblems(c.Law, out.After, old), x); len(problems) > 0 && len(l.Kind.UpdateProblems(gone, old)) == 0 {
		return l.Finding(c, BlocksDeletion, "the object cannot be deleted: the API server rejects the result for the removal of its last finalizer: "+strings.Join(problems, "; "), out)
	}
	if tree.Has(out.After.Doc, edits.Finalizers.Element(tree.Identity(edits.Finalizers, finalizer), 0)) || addsFinalizer(gone, out.After) {
		return l.Finding(c, BlocksDeletion, "the object cannot be deleted: the webhook adds a finalizer during the deletion", out)
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
