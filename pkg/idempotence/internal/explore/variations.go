// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// mostVaried is the maximum number of samples whose variations are checked.
const mostVaried = 3

// tryVariations checks laws on variations of the sample doc. To check L4a, it also adds each known setting to result,
// the result for doc, between two calls.
func (r *Run) tryVariations(doc any, result *objects.Object) {
	var all [][]edits.Edit
	if r.uses(SingleSettings) {
		all = slices.Concat(edits.NewSettings(doc), edits.OtherSettings(doc))
	}
	if r.uses(VariedSamples) {
		all = append(all, edits.OddNotes())
		all = append(all, edits.Variations(doc, r.Kind.KnowsValid())...)
	}
	for _, edits := range all {
		other, ok := doc, true
		for _, e := range edits {
			if ok {
				other, ok = e.Apply(other)
			}
		}
		if !ok {
			continue
		}
		x, ok := r.valid(other, false)
		if !ok {
			continue
		}
		for _, law := range []laws.Law{laws.L10, laws.L2, laws.L1} {
			r.try(&laws.Case{Law: law, Object: x.Doc})
		}
		if r.uses(OlderObjects) {
			r.try(&laws.Case{Law: laws.L6, Object: x.Doc, Variant: laws.OlderObject})
		}
	}
	x, ok := r.Valid(doc)
	if !ok || !r.uses(SingleSettings) {
		return
	}
	for _, edits := range edits.NewSettings(result.Doc) {
		r.try(&laws.Case{Law: laws.L4a, Object: x.Doc, Edits: edits})
	}
}
