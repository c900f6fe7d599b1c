// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// An updated is the object that the updates of some cases are of.
type updated struct {
	doc  any
	old  *objects.Object
	memo memo // of these cases
}

// asUpdate has all that follows be about updates, of an old object if it is not nil, until the function
// is called that it returns.
func (r *run) asUpdate(old *objects.Object) (leave func()) {
	operation, was, known := r.operation, r.kind.Old, r.memo
	r.operation, r.kind.Old, r.memo = admissionv1.Update, old, memo{}
	return func() { r.operation, r.kind.Old, r.memo = operation, was, known }
}

// enter is asUpdate for a case's old object. It is false where that is not valid.
func (r *run) enter(doc any) (leave func(), ok bool) {
	if !sameMap(r.updated.doc, doc) {
		back := r.asUpdate(nil)
		old, ok := r.valid(doc)
		if back(); !ok {
			return nil, false
		}
		r.updated = updated{doc: doc, old: old}
	}
	back := r.asUpdate(r.updated.old)
	r.memo = r.updated.memo
	return func() {
		r.updated.memo = r.memo
		back()
	}, true
}

// lookAtUpdate has a law look at a case about updates.
func (r *run) lookAtUpdate(c *Case) *Violation {
	leave, ok := r.enter(c.Old)
	if !ok {
		return nil
	}
	defer leave()
	v := r.lookAtRequest(c)
	if v != nil {
		v.Summary = "in an update: " + v.Summary
	}
	return v
}
