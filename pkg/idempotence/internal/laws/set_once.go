// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// setOnce reports whether two results differ only in values that the webhook writes once and then keeps by design: a
// record of its first call, or a default for a missing value. If elements were added at the front, it may also be a
// value that the webhook sets in the first of several elements.
//
// To decide that, setOnce reverts every value that the webhook wrote where the results differ, and calls the webhook
// again (settle). If the webhook then gives the other result, the values are set once. A removed value cannot be
// reverted.
func (t *Trial) setOnce(law Law, x, first, late, fresh *objects.Object, front bool, settle func(*objects.Object) *objects.Object) bool {
	differences := slices.DeleteFunc(t.withoutEncoding(t.content(law, late, fresh)), func(d tree.Change) bool { return isKeptNote(first, late, d) })
	if len(differences) == 0 {
		return true
	}
	if !front && slices.ContainsFunc(differences, func(d tree.Change) bool { return d.Kind != tree.Removed }) {
		return false
	}
	doc, taken := late.Doc, false
	for _, did := range edits.Single(edits.Single(tree.Changes(x.Doc, first.Doc))) { // also lists in new maps
		if !slices.ContainsFunc(differences, func(d tree.Change) bool { return d.Path.HasPrefix(did.Path) || did.Path.HasPrefix(d.Path) }) {
			continue
		}
		if back, ok := takeBack(x.Doc, doc, did); ok {
			doc, taken = back, true
		}
	}
	if !taken {
		return false
	}
	at, ok := t.Valid(doc)
	if ok {
		at = settle(at)
	}
	return ok && at != nil && !slices.ContainsFunc(t.withoutEncoding(t.content(law, at, fresh)), func(d tree.Change) bool { return !isKeptNote(first, at, d) })
}

// twice returns F(F(x)), or nil if a call fails.
func (t *Trial) twice(x *objects.Object) *objects.Object {
	s := t.Fresh()
	for range 2 {
		out := t.F(s, session.Query{Object: x})
		if x = out.After; !out.OK() {
			return nil
		}
	}
	return x
}

// takeBack reverts in doc a change that was made to x. It also removes maps that x does not have, if they become empty.
func takeBack(x, doc any, did tree.Change) (any, bool) {
	switch did.Kind {
	case tree.Added:
		doc, ok := tree.Remove(doc, did.Path)
		for p := did.Path[:len(did.Path)-1]; ok && len(p) > 0 && !tree.Has(x, p); p = p[:len(p)-1] {
			if value, _ := tree.Get(doc, p); !isVoid(value) {
				break
			}
			doc, ok = tree.Remove(doc, p)
		}
		return doc, ok
	case tree.Replaced, tree.Removed:
		return tree.Put(doc, did.Path, did.Old)
	}
	return nil, false
}

// isKeptNote reports whether a difference is in the value of an annotation or label that did not change since the first
// call.
func isKeptNote(first, late *objects.Object, d tree.Change) bool {
	was, had := tree.Get(first.Doc, d.Path)
	is, has := tree.Get(late.Doc, d.Path)
	return d.Kind == tree.Replaced && edits.IsNote(d.Path) && had && has && tree.Equal(was, is)
}
