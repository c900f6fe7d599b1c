// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// The laws are also checked on updates of the first updatedObjects objects, and then of one in oneOfUpdated objects.
const updatedObjects, oneOfUpdated = 6, 8

// Maximum numbers of cases for one update. They are low, because the checks on new objects cover similar cases.
const (
	mostUpdateParts     = 8
	mostUpdateEdits     = 8
	mostUpdateAdditions = 6
)

// tryAfterCreation checks laws on the requests that follow the creation of x: its deletion and its updates. result is
// the webhooks' result for x.
func (r *Run) tryAfterCreation(random *rand.Rand, i int, x, result *objects.Object) {
	if r.Handles(admissionv1.Delete) && r.uses(DeletionRequests) {
		r.try(&laws.Case{Law: laws.L2, Object: x.Doc, Variant: laws.DeletionRequest})
	}
	if r.Operation != admissionv1.Create || !r.Handles(admissionv1.Update) || !r.uses(Updates) {
		return
	}
	for _, law := range []laws.Law{laws.L2, laws.L1} {
		r.try(&laws.Case{Law: law, Object: x.Doc, Variant: laws.AfterCreation})
	}
	if nameless, ok := edits.WithoutName(x.Doc); ok && getsCostlyChecks(i) {
		r.try(&laws.Case{Law: laws.L1, Object: nameless, Variant: laws.AfterCreation})
	}
	if i >= updatedObjects && i%oneOfUpdated > 0 {
		return
	}
	changes := false
	for _, old := range []*objects.Object{result, x} { // the created object, and an object older than the webhook
		changes = r.tryUpdate(random, r.Kind.AsSent(old.Doc, true)) || changes
	}
	if changes && tree.Equal(x.Doc, result.Doc) {
		r.Tally.Changed++ // the webhook did not change this object at its creation
	}
}

// tryUpdate checks the laws on an update that annotates the stored object old. It reports whether the webhook changes
// the updated object.
func (r *Run) tryUpdate(random *rand.Rand, old any) (changed bool) {
	leave, ok := r.EnterUpdate(old)
	if !ok {
		return false
	}
	defer leave()
	doc, ok := tree.Put(old, edits.TouchedAnnotation, "yes")
	if !ok {
		return false
	}
	x, ok := r.Valid(doc)
	if !ok {
		return false
	}
	try := func(law laws.Law, change func(c *laws.Case)) {
		c := &laws.Case{Law: law, Object: doc, Old: old}
		if change != nil {
			change(c)
		}
		r.try(c)
	}
	try(laws.L3, func(c *laws.Case) { c.Variant = laws.Few })
	for _, law := range []laws.Law{laws.L10, laws.L2, laws.L1, laws.L7} {
		try(law, nil)
	}
	out := r.F(r.Fresh(), session.Query{Object: x})
	if r.Impure || !out.OK() || len(r.Kind.Problems(out.After)) > 0 {
		return false
	}
	changes := r.Changed(x, out.After)
	for _, edits := range few(r.partialResults(x, changes), mostUpdateParts) {
		try(laws.L5, func(c *laws.Case) { c.Edits = edits })
	}
	additions := r.legal(x, r.additions(random, x.Doc))
	for _, e := range few(additions, mostUpdateAdditions) {
		try(laws.L4b, func(c *laws.Case) { c.Edits = []edits.Edit{e} })
	}
	for _, edits := range few(edits.ByOthers(random, out.After.Doc, changes), mostUpdateEdits) {
		try(laws.L4a, func(c *laws.Case) { c.Edits = edits })
	}
	if full, ok := r.Edited(x, additions); ok && len(additions) > 0 {
		for _, law := range []laws.Law{laws.L10, laws.L2, laws.L1} {
			try(law, func(c *laws.Case) { c.Object = full.Doc })
		}
	}
	return len(changes) > 0
}

func few[T any](list []T, n int) []T { return list[:min(len(list), n)] }
