// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// An updated caches the object that several cases update.
type updated struct {
	doc  any
	old  *objects.Object
	memo memo // of these cases
}

// asUpdate turns the following calls into updates, of old if it is not nil, until the returned function is
// called.
func (r *run) asUpdate(old *objects.Object) (leave func()) {
	operation, was, known := r.operation, r.kind.Old, r.memo
	r.operation, r.kind.Old, r.memo = admissionv1.Update, old, memo{}
	return func() { r.operation, r.kind.Old, r.memo = operation, was, known }
}

// enter calls asUpdate with a case's old object. It reports false if that is not valid.
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

// checkOnUpdate checks a case with an old object.
func (r *run) checkOnUpdate(c *Case) *Violation {
	leave, ok := r.enter(c.Old)
	if !ok {
		return nil
	}
	defer leave()
	v := r.checkOnRequest(c)
	if v != nil {
		v.Summary = "in an update: " + v.Summary
	}
	return v
}
