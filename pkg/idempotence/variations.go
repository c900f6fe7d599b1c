// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// mostVaried is the number of objects that are checked with all variations.
const mostVaried = 3

// tryAlike checks the laws on objects that differ from a sample in one value, and on edits that make that difference
// later.
func (r *run) tryAlike(doc any, result *objects.Object) {
	var all [][]Edit
	if r.opts.uses(singleSettings) {
		all = slices.Concat(edits.NewSettings(doc), edits.OtherSettings(doc))
	}
	if r.opts.uses(variedSamples) {
		all = append(all, edits.Variations(doc, r.kind.KnowsValid())...)
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
		x, ok := r.valid(other)
		if !ok {
			continue
		}
		for _, law := range []Law{L10, L2, L1} {
			r.try(&Case{Law: law, Object: x.Doc})
		}
		if r.opts.uses(olderObjects) {
			r.try(&Case{Law: L6, Object: x.Doc, Variant: olderObject})
		}
	}
	x, ok := r.valid(doc)
	if !ok || !r.opts.uses(singleSettings) {
		return
	}
	for _, edits := range edits.NewSettings(result.Doc) {
		r.try(&Case{Law: L4a, Object: x.Doc, Edits: edits})
	}
}
