// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// The type updated caches the stored object that consecutive cases update.
type updated struct {
	doc  any
	old  *objects.Object
	memo memo // of these cases
}

// startUpdates turns all later requests into updates, until leave is called. If old is not nil, it is the stored object
// of those updates (see Session.AsUpdate).
func (t *Trial) startUpdates(old *objects.Object) (leave func()) {
	back, known := t.AsUpdate(old), t.memo
	t.memo = memo{}
	return func() { back(); t.memo = known }
}

// EnterUpdate turns all later requests into updates of the stored object doc, until leave is called. It returns false
// if doc is not valid.
func (t *Trial) EnterUpdate(doc any) (leave func(), ok bool) {
	if !sameMap(t.updated.doc, doc) {
		back := t.startUpdates(nil)
		old, ok := t.Valid(doc)
		if back(); !ok {
			return nil, false
		}
		t.updated = updated{doc: doc, old: old}
	}
	back := t.startUpdates(t.updated.old)
	t.memo = t.updated.memo
	return func() {
		t.updated.memo = t.memo
		back()
	}, true
}

// sameMap reports whether two documents are the same map in memory.
func sameMap(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	return isMap && areMaps && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
}

// stored returns x as the API server stores it at its creation, with the webhooks' changes. It returns false if the
// creation fails.
func (t *Trial) stored(x *objects.Object) (*objects.Object, bool) {
	if t.Operation == admissionv1.Create {
		out := t.first(x)
		if !out.OK() || len(t.Kind.Problems(out.After)) > 0 {
			return nil, false
		}
		x = out.After
	}
	defer t.startUpdates(nil)()
	return t.Valid(x.Doc)
}
