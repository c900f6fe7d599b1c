// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// explore generates objects, the simplest first, and checks the laws on them.
func (r *run) explore() {
	r.inputs.restrict(&r.opts)
	r.divideReplicas()
	random := rand.New(rand.NewPCG(uint64(r.opts.seed), 0))
	var before []any
	for i := range r.opts.objects {
		if r.over() {
			return
		}
		r.at = i + 1
		doc := r.inputs.object(random, i)
		x, ok := r.valid(doc)
		if !ok {
			r.tally.refusal = cmp.Or(r.tally.refusal, r.refusalOf(doc))
			continue
		}
		r.tally.objects++
		out := r.f(r.fresh(), query{object: x})
		if len(before) == 0 && r.hangs(x, out) {
			return
		}
		if len(out.calls) > 0 {
			r.tally.called++
		} else {
			r.noteExclusion(x)
		}
		if out.ok() {
			r.tally.allowed++
			if !tree.Equal(out.after.Doc, x.Doc) {
				r.tally.changed++
				r.clock.start(x, out)
			}
		} else {
			r.tally.denial = cmp.Or(r.tally.denial, out.message, out.fault)
		}
		r.one(random, i, x, out, before)
		if out.ok() && !r.tally.impure {
			if i < min(max(1, len(r.inputs.samples)), mostVaried) {
				r.tryAlike(doc, out.after)
			}
			r.manifestAgain(doc)
			r.tryLater(random, i, x, out.after)
		}
		before = append(before[max(0, len(before)-3):], x.Doc)
		r.tell(i)
	}
	if r.clock.x != nil && !r.tally.impure && r.opts.uses(laterCalls) && r.opts.uses(freshInstances) {
		r.try(&Case{Law: L3, Object: r.clock.x.Doc, Variant: nextSecond})
	}
}

// divideReplicas sends a different object to each replica, so that the replicas have different histories as in a
// cluster.
func (r *run) divideReplicas() {
	if !r.opts.uses(objectsBefore) {
		return
	}
	for _, w := range r.subject.webhooks {
		if len(w.replicas) < 2 {
			continue
		}
		random := rand.New(rand.NewPCG(uint64(r.opts.seed), 1))
		for i, replica := range w.replicas {
			x, ok := r.valid(r.inputs.object(random, max(len(r.inputs.samples), 1)-1+i))
			if ok && w.handles(r.kind, r.operation) && !r.over() {
				r.ask(w, replica, query{operation: r.operation, object: x})
			}
		}
	}
}

// one checks all laws on one object.
func (r *run) one(random *rand.Rand, i int, x *objects.Object, out *outcome, before []any) {
	try := func(law Law, change func(c *Case)) {
		c := &Case{Law: law, Object: x.Doc}
		if change != nil {
			change(c)
		}
		r.try(c)
	}
	variant := func(v Variant) func(*Case) { return func(c *Case) { c.Variant = v } }
	if i < 3 || len(r.subject.webhooks) > 0 && i%8 == 0 {
		try(L3, nil)
	} else {
		try(L3, variant(variantFew))
	}
	if len(before) > 0 && r.opts.uses(objectsBefore) && r.opts.uses(freshInstances) {
		try(L3, func(c *Case) { c.Variant, c.Before = variantFew, slices.Clone(before) })
	}
	if i < 3 && r.opts.bubble != nil {
		try(L3, variant(anotherTime))
	}
	if r.opts.uses(noNamespace) {
		try(L3, variant(withoutNamespace))
	}
	for _, law := range []Law{L8, L10, L2, L1} {
		try(law, nil)
	}
	if !r.tally.impure {
		try(L7, nil) // also where it denies the object
	}
	if r.tally.impure || !out.ok() {
		return
	}
	if r.opts.uses(newFields) {
		try(L9, func(c *Case) { c.Edits = edits.UnknownFields(random, x.Doc) })
	}
	for _, w := range []struct {
		variant Variant
		family  family
	}{{olderObject, olderObjects}, {deletion, deletions}} {
		if r.opts.uses(w.family) {
			try(L6, variant(w.variant))
		}
	}
	changes := r.differences("", x, out.after)
	r.tryParts(x, changes, try)
	r.tryEdits(random, x, out.after, changes, try)
	for _, name := range r.rivalNames() {
		for _, law := range []Law{L12, L11} {
			try(law, func(c *Case) { c.Rival = name })
		}
	}
}

// manifestAgain checks L6 on a manifest that is applied again as it was written, without defaults.
func (r *run) manifestAgain(doc any) {
	if r.opts.uses(manifestsAgain) {
		r.try(&Case{Law: L6, Object: doc, Variant: sameAgain})
	}
}

// tryParts checks L5, L1 and L2 on objects that hold a part of the result or something similar.
func (r *run) tryParts(x *objects.Object, changes []tree.Change, try func(Law, func(*Case))) {
	for _, edits := range r.partialResults(x, changes) {
		try(L5, func(c *Case) { c.Edits = edits })
		if part, ok := r.edited(x, edits); ok {
			for _, law := range []Law{L2, L1, L10} {
				try(law, func(c *Case) { c.Object = part.Doc })
			}
		}
	}
}

// tryEdits checks L4a and L4b on edits of others between two calls.
func (r *run) tryEdits(random *rand.Rand, x, result *objects.Object, changes []tree.Change, try func(Law, func(*Case))) {
	var additions []Edit
	if r.opts.uses(strangersAdd) {
		additions = r.additions(random, x.Doc)
	}
	var twins, removed []Edit
	if r.opts.uses(legalTwins) {
		twins = edits.LegalDuplicates(x.Doc)
	}
	if r.opts.uses(removedTwins) {
		removed = edits.LikeRemoved(changes)
	}
	for _, edits := range [][]Edit{additions, twins, removed} {
		if full, ok := r.edited(x, r.legal(x, edits)); ok && len(edits) > 0 {
			for _, law := range []Law{L10, L2, L1} {
				try(law, func(c *Case) { c.Object = full.Doc })
			}
		}
	}
	for _, e := range additions {
		try(L4b, func(c *Case) { c.Edits = []Edit{e} })
	}
	if all := r.legal(x, additions); len(all) > 1 {
		try(L4b, func(c *Case) { c.Edits = all })
	}
	if r.opts.uses(meddlingEdits) {
		for _, edits := range edits.ByOthers(random, result.Doc, changes) {
			try(L4a, func(c *Case) { c.Edits = edits })
		}
	}
	if !r.opts.uses(strangersFirst) {
		return
	}
	for _, e := range additions {
		e.Front = true
		try(L4a, func(c *Case) { c.Edits = []Edit{e} })
		if e.Path.Last() == "containers" || e.Path.Last() == "initContainers" {
			try(L4b, func(c *Case) { c.Edits = []Edit{e} })
		}
	}
}

// try checks a case and shrinks a violation. It skips a law that is known to fail in the same way.
func (r *run) try(c *Case) {
	if r.over() || slices.Contains(r.opts.without, c.Law) || r.tally.broken[c.Law] {
		return
	}
	r.tally.checksOf[c.Law]++
	v := r.check(c)
	if v == nil || r.tally.advised[v.Law] && v.Verdict == Advice {
		return
	}
	if v.Verdict == Advice {
		r.tally.advised[v.Law] = true
		r.report.found(r.shrink(v))
		return
	}
	r.tally.broken[c.Law] = true
	v = r.shrink(v)
	if c.Law == L3 {
		r.tally.impure = true
		v.Verdict = Impure
	}
	r.report.found(v)
}

// partialResults returns the edits that put parts of a result into an object.
func (r *run) partialResults(x *objects.Object, changes []tree.Change) [][]Edit {
	return edits.PartialResults(x.Doc, changes, r.opts.uses(partsOfResults), r.opts.uses(alikeParts))
}

// additions returns the edits by which others may add to an object of the kind.
func (r *run) additions(random *rand.Rand, doc any) []Edit {
	all := edits.Additions(random, doc, r.kind.GoType == nil)
	if r.kind.Custom != nil || r.kind.GoType != nil && len(edits.ContainerLists(doc)) == 0 {
		own := rand.New(rand.NewPCG(uint64(r.opts.seed), uint64(tree.Size(doc)))) // keeps other objects as they are
		all = append(all, edits.MadeAdditions(own, r.inputs.made, doc)...)
	}
	return all
}

// legal returns the edits after which the API server accepts the object.
func (r *run) legal(x *objects.Object, edits []Edit) (legal []Edit) {
	for _, e := range edits {
		if _, ok := r.edited(x, append(slices.Clone(legal), e)); ok {
			legal = append(legal, e)
		}
	}
	return legal
}
