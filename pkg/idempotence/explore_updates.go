// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"math/rand/v2"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// updatedObjects is the number of first objects that are also updated; after them every updatedObjects-th is.
const updatedObjects, oneOfUpdated = 6, 8

// Bounds for the cases of one update. The creation has covered many of them already.
const (
	mostUpdateParts     = 8
	mostUpdateMeddling  = 8
	mostUpdateAdditions = 6
)

// tryLater checks the laws on requests after an object's creation.
func (r *run) tryLater(random *rand.Rand, i int, x, result *objects.Object) {
	if r.handles(admissionv1.Delete) && r.opts.uses(deletionRequests) {
		r.try(&Case{Law: L2, Object: x.Doc, Variant: deletionRequest})
	}
	if r.operation != admissionv1.Create || !r.handles(admissionv1.Update) || !r.opts.uses(updatesOfObjects) {
		return
	}
	for _, law := range []Law{L2, L1} {
		r.try(&Case{Law: law, Object: x.Doc, Variant: afterCreation})
	}
	if i >= updatedObjects && i%oneOfUpdated > 0 {
		return
	}
	changes := false
	for _, old := range []*objects.Object{result, x} { // what the webhook has seen, and what is older than the webhook
		changes = r.tryUpdate(random, r.kind.AsSent(old.Doc, true)) || changes
	}
	if changes && tree.Equal(x.Doc, result.Doc) {
		r.tally.changed++ // which the creation has not counted
	}
}

// tryUpdate checks the laws of reinvocation on an update of an object. It reports whether the webhook changes the
// object.
func (r *run) tryUpdate(random *rand.Rand, old any) (changed bool) {
	leave, ok := r.enter(old)
	if !ok {
		return false
	}
	defer leave()
	doc, ok := tree.Put(old, edits.TouchedAnnotation, "yes")
	if !ok {
		return false
	}
	x, ok := r.valid(doc)
	if !ok {
		return false
	}
	try := func(law Law, change func(c *Case)) {
		c := &Case{Law: law, Object: doc, Old: old}
		if change != nil {
			change(c)
		}
		r.try(c)
	}
	try(L3, func(c *Case) { c.Variant = variantFew })
	for _, law := range []Law{L10, L2, L1, L7} {
		try(law, nil)
	}
	out := r.f(r.fresh(), query{object: x})
	if r.tally.impure || !out.ok() || len(r.kind.Problems(out.after)) > 0 {
		return false
	}
	changes := r.differences("", x, out.after)
	for _, edits := range few(r.partialResults(x, changes), mostUpdateParts) {
		try(L5, func(c *Case) { c.Edits = edits })
	}
	additions := r.legal(x, r.additions(random, x.Doc))
	for _, e := range few(additions, mostUpdateAdditions) {
		try(L4b, func(c *Case) { c.Edits = []Edit{e} })
	}
	for _, edits := range few(edits.ByOthers(random, out.after.Doc, changes), mostUpdateMeddling) {
		try(L4a, func(c *Case) { c.Edits = edits })
	}
	if full, ok := r.edited(x, additions); ok && len(additions) > 0 {
		for _, law := range []Law{L10, L2, L1} {
			try(law, func(c *Case) { c.Object = full.Doc })
		}
	}
	return len(changes) > 0
}

func few[T any](list []T, n int) []T { return list[:min(len(list), n)] }
