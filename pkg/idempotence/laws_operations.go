// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// Variants that find webhooks which do not expect requests after an object's creation.
const (
	// afterCreation is for L1 and L2: updates that change nothing.
	afterCreation Variant = "after creation"
	// deletionRequest is for L2: a DELETE, which has an old object only.
	deletionRequest Variant = "deletion request"
)

// stored returns x as it is stored after its creation, with the webhook's changes.
func (r *run) stored(x *objects.Object) (*objects.Object, bool) {
	if r.operation == admissionv1.Create {
		out := r.first(x)
		if !out.ok() || len(r.kind.Problems(out.after)) > 0 {
			return nil, false
		}
		x = out.after
	}
	defer r.asUpdate(nil)()
	return r.valid(x.Doc)
}

// checkUpdates checks L1 and L2 on updates of the webhook's own result.
func (r *run) checkUpdates(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok || r.operation != admissionv1.Create || !r.handles(admissionv1.Update) {
		return nil
	}
	created := r.first(x)
	stored, ok := r.stored(x)
	if !ok {
		return nil
	}
	defer r.asUpdate(nil)()
	s := r.fresh()
	first := r.f(s, query{object: stored, old: stored})
	if c.Law == L2 {
		return r.allowsUpdate(c, x, created, first)
	}
	if !first.ok() || len(r.kind.UpdateProblems(first.after, stored)) > 0 {
		return nil // L2, L6
	}
	again := r.f(s, query{object: first.after, old: first.after})
	if !again.ok() {
		return nil
	}
	if changes := r.differences(c.Law, first.after, again.after); len(changes) > 0 {
		return r.violation(c, changeMode(changes), "each update changes the object again, although it says nothing new: "+summary(changes), first, again)
	}
	return nil
}

// allowsUpdate checks L2 on an update of the webhook's result. A webhook may deny all updates.
func (r *run) allowsUpdate(c *Case, x *objects.Object, created, update *outcome) *Violation {
	if v := r.failed(c, update); v != nil {
		return v
	}
	if update.fault != "" || update.allowed || len(r.differences("", x, created.after)) == 0 {
		return nil
	}
	plain, ok := r.valid(x.Doc)
	if !ok || !r.f(r.fresh(), query{object: plain, old: plain}).ok() {
		return nil
	}
	return r.violation(c, FailureDenied, "it allows the object and then denies an update of what it made of it: "+update.message, created, update)
}

// checkDeletion checks L2 on a DELETE.
func (r *run) checkDeletion(c *Case) *Violation {
	x, ok := r.object(c)
	if !ok || !r.handles(admissionv1.Delete) {
		return nil
	}
	stored, ok := r.stored(x)
	if !ok {
		return nil
	}
	out := r.f(r.fresh(), query{operation: admissionv1.Delete, old: stored})
	if out.fault == "" {
		return nil // a denial is a decision
	}
	return r.violation(c, FailureServerError, "the object cannot be deleted: "+textutil.FirstLine(out.fault), out)
}
