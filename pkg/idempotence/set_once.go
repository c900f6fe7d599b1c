// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// setOnce reports whether two results differ only in what the webhook writes once and then leaves alone, by
// design: a note of what it found at its first call, or what it sets unless there is something. With
// additions at the front, it may also be what it sets in the first of some elements.
//
// So it is if the webhook, once all that is taken back which it wrote where the results differ, goes on
// to make the other result; settle is how it goes on. What it has forgotten stays forgotten then,
// because there is nothing to take back.
func (r *run) setOnce(law Law, x, first, late, fresh *objects.Object, front bool, settle func(*objects.Object) *objects.Object) bool {
	differences := slices.DeleteFunc(r.content(law, late, fresh), func(d tree.Change) bool { return isKeptNote(first, late, d) })
	if len(differences) == 0 {
		return true
	}
	if !front && slices.ContainsFunc(differences, func(d tree.Change) bool { return d.Kind != tree.Removed }) {
		return false
	}
	doc, taken := late.Doc, false
	for _, did := range edits.Single(tree.Changes(x.Doc, first.Doc)) {
		if !slices.ContainsFunc(differences, func(d tree.Change) bool { return d.Path.HasPrefix(did.Path) || did.Path.HasPrefix(d.Path) }) {
			continue
		}
		if back, ok := takeBack(doc, did); ok {
			doc, taken = back, true
		}
	}
	if !taken {
		return false
	}
	at, ok := r.valid(doc)
	if ok {
		at = settle(at)
	}
	return ok && at != nil && !slices.ContainsFunc(r.content(law, at, fresh), func(d tree.Change) bool { return !isKeptNote(first, at, d) })
}

// twice is F(F(x)), or nil.
func (r *run) twice(x *objects.Object) *objects.Object {
	s := r.fresh()
	for range 2 {
		out := r.f(s, query{object: x})
		if x = out.after; !out.ok() {
			return nil
		}
	}
	return x
}

// takeBack undoes a change.
func takeBack(doc any, did tree.Change) (any, bool) {
	switch did.Kind {
	case tree.Added:
		return tree.Remove(doc, did.Path)
	case tree.Replaced, tree.Removed:
		return tree.Put(doc, did.Path, did.Old)
	}
	return nil, false
}

// isKeptNote reports whether a difference is the value of an annotation or a label that has been the same
// since the first call.
func isKeptNote(first, late *objects.Object, d tree.Change) bool {
	was, had := tree.Get(first.Doc, d.Path)
	is, has := tree.Get(late.Doc, d.Path)
	return d.Kind == tree.Replaced && edits.IsNote(d.Path) && had && has && tree.Equal(was, is)
}
