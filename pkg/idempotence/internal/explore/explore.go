// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// All generates r.Objects objects, the simplest first, and checks the laws on each of them.
func (r *Run) All() {
	firsts := r.firstAnswers()
	r.divideReplicas()
	r.learn()
	random := rand.New(rand.NewPCG(uint64(r.Seed), 0))
	var before []any
	quiet := newQuiet(r)
	for i := range r.Objects {
		if r.Over() {
			return
		}
		if quiet.canEnd(i) {
			r.EndedAt = i
			break
		}
		r.object = i + 1
		doc := r.inputs.object(random, i)
		x, ok := r.valid(doc, i < len(r.inputs.samples))
		if !ok {
			r.Tally.Refusal = cmp.Or(r.Tally.Refusal, r.RefusalOf(doc))
			continue
		}
		out := r.CountObject(x)
		if len(before) == 0 && r.hangs(x, out) {
			return
		}
		if out.Late() {
			r.reportLate(x, out)
			continue
		}
		if len(out.Calls) > 0 {
			r.Tally.Called++
		} else {
			r.noteExclusion(x)
		}
		if out.OK() {
			if !tree.Equal(out.After.Doc, x.Doc) {
				r.StartClock(x, out)
			} else {
				r.unblock(i, doc)
			}
		} else {
			r.Tally.Denial = cmp.Or(r.Tally.Denial, out.Message, out.Fault)
		}
		r.one(random, i, x, out, before)
		if out.OK() && !r.Impure {
			if i < min(max(1, len(r.inputs.samples)), mostVaried) {
				r.tryVariations(doc, out.After)
				r.tryShapes(x, out.After)
				r.tryZeros(x, out.After)
				r.tryChanges(doc, x, out.After)
				r.trySwitchedOff(i, doc, r.Changed(x, out.After))
			}
			r.tryTexts(i, x, out.After)
			r.manifestAgain(doc)
			r.replaced(doc)
			r.tryAfterCreation(random, i, x, out.After)
		}
		before = append(before[max(0, len(before)-3):], x.Doc)
		r.logProgress(i)
	}
	r.trySwitches(random, before)
	r.tryParallel(r.Timed(), before)
	if x := r.Timed(); x != nil && !r.Impure && r.uses(LaterCalls) && r.uses(FreshInstances) {
		r.try(&laws.Case{Law: laws.L3, Object: x.Doc, Variant: laws.NextSecond})
	}
	r.tryAgain(firsts)
}

// An answered is an object with the webhooks' first result for it.
type answered struct {
	x   *objects.Object
	out *session.Outcome
}

// firstAnswers sends the samples to the webhooks, before any other request.
func (r *Run) firstAnswers() (firsts []answered) {
	if !r.uses(ObjectsBefore) {
		return nil
	}
	for _, sample := range r.inputs.samples[:min(len(r.inputs.samples), mostLearnt)] {
		x, ok := r.Valid(sample)
		if !ok || r.Over() {
			continue
		}
		out := r.Request(r.NewInstances(), session.Query{Object: x})
		if out.Late() {
			return nil // the search for the trigger handles a webhook that hangs
		}
		firsts = append(firsts, answered{x, out})
	}
	return firsts
}

// tryAgain checks L3 on the samples after all other requests.
func (r *Run) tryAgain(firsts []answered) {
	for _, first := range firsts {
		if r.Over() || r.Impure || !r.uses(ObjectsBefore) || slices.Contains(r.Without, laws.L3) || r.Tally.violations(laws.L3) >= maxFindings {
			return
		}
		f := r.AfterRun(first.x, first.out)
		if f == nil {
			continue
		}
		if places := r.PlacesOf(f); !r.Tally.knows(f, places...) {
			r.Tally.Add(f, places...)
			r.Found(f)
		}
	}
}

// divideReplicas sends a different object to each replica of a webhook. So the replicas have different histories, as in
// a cluster.
func (r *Run) divideReplicas() {
	if !r.uses(ObjectsBefore) {
		return
	}
	for _, w := range r.Webhooks {
		if len(w.Replicas) < 2 {
			continue
		}
		random := rand.New(rand.NewPCG(uint64(r.Seed), 1))
		for i, replica := range w.Replicas {
			x, ok := r.Valid(r.inputs.object(random, max(len(r.inputs.samples), 1)-1+i))
			if ok && w.Handles(r.Kind, r.Operation) && !r.Over() {
				r.Ask(w, replica, session.Query{Operation: r.Operation, Object: x})
			}
		}
	}
}

// one checks all laws on one object. x is the object, out the webhooks' result for it, and before has earlier objects.
func (r *Run) one(random *rand.Rand, i int, x *objects.Object, out *session.Outcome, before []any) {
	try := func(law laws.Law, change func(c *laws.Case)) {
		c := &laws.Case{Law: law, Object: x.Doc}
		if change != nil {
			change(c)
		}
		r.try(c)
	}
	variant := func(v laws.Variant) func(*laws.Case) { return func(c *laws.Case) { c.Variant = v } }
	if i < 3 || len(r.Webhooks) > 0 && i%8 == 0 {
		try(laws.L3, nil)
	} else {
		try(laws.L3, variant(laws.Few))
	}
	r.tryMemory(i, x, before)
	if i < 3 && r.Bubble != nil {
		try(laws.L3, variant(laws.AnotherTime))
	}
	if r.uses(NoNamespace) {
		try(laws.L3, variant(laws.WithoutNamespace))
	}
	for _, law := range []laws.Law{laws.L8, laws.L10, laws.L2, laws.L1} {
		try(law, nil)
	}
	r.tryUsers(i, x)
	if !r.Impure {
		try(laws.L7, nil) // even if the webhook denies the object
	}
	if r.Impure || !out.OK() {
		return
	}
	if r.uses(UnknownFields) {
		try(laws.L9, func(c *laws.Case) { c.Edits = edits.UnknownFields(random, x.Doc) })
	}
	for _, w := range []struct {
		variant laws.Variant
		family  Family
	}{{laws.OlderObject, OlderObjects}, {laws.Deletion, Deletions}} {
		if r.uses(w.family) {
			try(laws.L6, variant(w.variant))
		}
	}
	changes := r.Changed(x, out.After)
	r.tryParts(x, changes, try)
	r.tryEdits(random, x, out.After, changes, try)
	r.tryCopies(i, x, out.After, changes)
	r.tryRivals(i, x, out.After)
}

// manifestAgain checks L6 on an object whose manifest is applied again. The manifest is doc, without defaults.
func (r *Run) manifestAgain(doc any) {
	if r.uses(ManifestsAgain) {
		r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.SameAgain})
	}
}

// tryParts checks L5, L1, L2 and L10 on objects that already have a part of the result, or an element that resembles a
// part.
func (r *Run) tryParts(x *objects.Object, changes []tree.Change, try func(laws.Law, func(*laws.Case))) {
	parts := r.partialResults(x, changes)
	r.Ahead([]*objects.Object{x}, parts)
	for _, edits := range parts {
		try(laws.L5, func(c *laws.Case) { c.Edits = edits })
		if part, ok := r.Edited(x, edits); ok {
			for _, law := range []laws.Law{laws.L2, laws.L1, laws.L10} {
				try(law, func(c *laws.Case) { c.Object = part.Doc })
			}
		}
	}
}

// tryEdits checks L4a and L4b with edits by other parties between two calls. It also checks L10, L2 and L1 on objects
// that have the additions from the start.
func (r *Run) tryEdits(random *rand.Rand, x, result *objects.Object, changes []tree.Change, try func(laws.Law, func(*laws.Case))) {
	var additions []edits.Edit
	if r.uses(Additions) {
		additions = r.additions(random, x.Doc)
	}
	var twins, removed []edits.Edit
	if r.uses(LegalDuplicates) {
		twins = edits.LegalDuplicates(x.Doc)
	}
	if r.uses(DuplicatesOfRemoved) {
		removed = edits.LikeRemoved(changes)
	}
	all := r.legal(x, additions)
	for _, edits := range [][]edits.Edit{all, r.legal(x, twins), r.legal(x, removed)} {
		if full, ok := r.Edited(x, edits); ok && len(edits) > 0 {
			for _, law := range []laws.Law{laws.L10, laws.L2, laws.L1} {
				try(law, func(c *laws.Case) { c.Object = full.Doc })
			}
		}
	}
	r.Ahead([]*objects.Object{x, result}, each(additions))
	for _, e := range additions {
		try(laws.L4b, func(c *laws.Case) { c.Edits = []edits.Edit{e} })
	}
	if len(all) > 1 {
		try(laws.L4b, func(c *laws.Case) { c.Edits = all })
	}
	for _, pair := range edits.LateNotes(x.Doc, mostLateNotes) {
		if doc, ok := pair[0].Apply(x.Doc); ok && r.uses(Additions) {
			try(laws.L4b, func(c *laws.Case) { c.Object, c.Edits, c.Variant = doc, pair[1:], laws.LateNote })
		}
	}
	if r.uses(EditsOfResults) {
		byOthers := edits.ByOthers(random, result.Doc, changes)
		r.Ahead([]*objects.Object{result}, byOthers)
		for _, edits := range byOthers {
			try(laws.L4a, func(c *laws.Case) { c.Edits = edits })
		}
	}
	if !r.uses(FrontAdditions) {
		return
	}
	for i := range additions {
		additions[i].Front = true
	}
	r.Ahead([]*objects.Object{result}, each(additions))
	noPods := len(edits.ContainerLists(x.Doc)) == 0
	for _, e := range additions {
		try(laws.L4a, func(c *laws.Case) { c.Edits = []edits.Edit{e} })
		_, isObject := e.Value.(map[string]any)
		if e.Path.Last() == "containers" || e.Path.Last() == "initContainers" || (r.Kind.GoType == nil || noPods) && e.What == edits.Insert && isObject {
			try(laws.L4b, func(c *laws.Case) { c.Edits = []edits.Edit{e} })
		}
	}
}

// each returns a list of one edit for each edit.
func each(list []edits.Edit) (lists [][]edits.Edit) {
	for _, e := range list {
		lists = append(lists, []edits.Edit{e})
	}
	return lists
}

// mostLateNotes is the maximum number of annotations and labels of an object that are added between two calls.
const mostLateNotes = 4

// partialResults returns edits that add parts of a webhook's result to x, as if x had them before the first call.
// changes are the changes from x to the result.
func (r *Run) partialResults(x *objects.Object, changes []tree.Change) [][]edits.Edit {
	return edits.PartialResults(x.Doc, changes, r.uses(PartialResults), r.uses(SimilarParts))
}

// additions returns edits that add values to an object of the kind, as other parties may do.
func (r *Run) additions(random *rand.Rand, doc any) []edits.Edit {
	all := edits.Additions(random, doc, r.Kind.GoType == nil)
	if r.uses(CopiedElements) {
		all = append(all, edits.CopiedElements(doc, r.Kind.GoType == nil)...)
	}
	if r.Kind.Custom != nil || r.Kind.GoType != nil && len(edits.ContainerLists(doc)) == 0 {
		own := rand.New(rand.NewPCG(uint64(r.Seed), uint64(tree.Size(doc)))) // keeps later objects the same
		all = append(all, edits.MadeAdditions(own, r.inputs.made, doc)...)
	}
	return all
}

// legal returns those edits that the API server accepts together. If it rejects all of them, legal divides them in two
// halves, and tries the second half after the edits of the first one that are accepted.
func (r *Run) legal(x *objects.Object, list []edits.Edit) []edits.Edit {
	return r.legalAfter(x, nil, list)
}

// legalAfter does the same for edits that follow the accepted ones. It returns accepted and those that it adds.
func (r *Run) legalAfter(x *objects.Object, accepted, list []edits.Edit) []edits.Edit {
	if len(list) == 0 {
		return accepted
	}
	all := slices.Concat(accepted, list)
	if _, ok := r.Edited(x, all); ok {
		return all
	}
	if len(list) == 1 {
		return accepted
	}
	half := len(list) / 2
	return r.legalAfter(x, r.legalAfter(x, accepted, list[:half]), list[half:])
}
