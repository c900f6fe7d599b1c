// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// tryShapes checks L10, L2 and L1 on objects without the lists and maps into which the webhook writes. It also checks
// L5 on objects with similar names inside. result is the webhooks' result for x.
func (r *Run) tryShapes(x, result *objects.Object) {
	if r.uses(SparseObjects) && r.Kind.KnowsValid() {
		for _, list := range edits.Sparse(x.Doc, r.Changed(x, result)) {
			sparse, ok := r.Edited(x, list)
			if !ok {
				continue
			}
			for _, law := range []laws.Law{laws.L10, laws.L2, laws.L1} {
				r.try(&laws.Case{Law: law, Object: sparse.Doc})
			}
		}
	}
	if !r.uses(SimilarNames) || !r.Kind.KnowsValid() {
		return
	}
	for _, twins := range few(edits.NameTwins(x.Doc), mostTwins) {
		if _, ok := r.Edited(x, twins.Plain); !ok {
			continue
		}
		for _, list := range twins.Alike {
			if _, ok := r.Edited(x, list); ok {
				r.try(&laws.Case{Law: laws.L5, Variant: laws.SimilarNames, Object: x.Doc, Edits: slices.Concat(twins.Plain, list)})
			}
		}
		r.try(&laws.Case{Law: laws.L5, Variant: laws.ManyNames, Object: x.Doc, Edits: twins.Many})
	}
}

// mostTwins is the maximum number of lists to which elements with similar names are added.
const mostTwins = 6
