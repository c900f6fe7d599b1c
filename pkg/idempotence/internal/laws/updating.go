// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"reflect"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// An updated caches the object that several cases update.
type updated struct {
	doc  any
	old  *objects.Object
	memo memo // of these cases
}

// startUpdates turns the following calls into updates, of old if it is not nil, until the returned function is
// called.
func (k *Checker) startUpdates(old *objects.Object) (leave func()) {
	back, known := k.AsUpdate(old), k.memo
	k.memo = memo{}
	return func() { back(); k.memo = known }
}

// EnterUpdate starts updates with a case's old object. It reports false if that is not valid.
func (k *Checker) EnterUpdate(doc any) (leave func(), ok bool) {
	if !sameMap(k.updated.doc, doc) {
		back := k.startUpdates(nil)
		old, ok := k.Valid(doc)
		if back(); !ok {
			return nil, false
		}
		k.updated = updated{doc: doc, old: old}
	}
	back := k.startUpdates(k.updated.old)
	k.memo = k.updated.memo
	return func() {
		k.updated.memo = k.memo
		back()
	}, true
}

// checkOnUpdate checks a case with an old object.
func (k *Checker) checkOnUpdate(c *Case) *Finding {
	leave, ok := k.EnterUpdate(c.Old)
	if !ok {
		return nil
	}
	defer leave()
	v := k.checkOnRequest(c)
	if v != nil {
		v.Summary = "in an update: " + v.Summary
	}
	return v
}

// sameMap reports whether two documents are the same map in memory.
func sameMap(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	return isMap && areMaps && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
}
