// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// Costly checks, whose results seldom depend on the object, are made on the first objects and then on one of seldom
// objects.
const firstObjects, seldom = 3, 8

// getsCostlyChecks reports whether costly checks are made on the i-th object.
func getsCostlyChecks(i int) bool { return i < firstObjects || i%seldom == 0 }

// namesakes returns objects that a webhook may mistake for x, because they have its name or generateName: x with other
// content, the last objects in before under the name of x, and x with other content in another namespace. In a cluster,
// such an object can be created after x was deleted. Its uid differs.
func (r *Run) namesakes(x *objects.Object, before []any) (list []any) {
	add := func(doc any) {
		uid := ""
		if r.Operation != admissionv1.Create {
			uid = fmt.Sprintf("7d3f0a52-95c1-4a0e-8f0b-2c1d5e6a9c%02d", len(list))
		}
		doc = edits.Namesake(doc, x.Doc, uid)
		if o, ok := r.Valid(doc); ok && !tree.Equal(o.Doc, x.Doc) {
			list = append(list, o.Doc)
		}
	}
	other := x.Doc
	for _, e := range r.replacement(x.Doc) {
		if next, ok := e.Apply(other); ok {
			other = next
		}
	}
	add(other)
	for _, doc := range before[max(0, len(before)-2):] {
		add(doc)
	}
	if namespace := r.otherNamespace(); namespace != "" {
		if elsewhere, ok := tree.Put(other, edits.Metadata.Member("namespace"), namespace); ok {
			if o, ok := r.Valid(elsewhere); ok {
				list = append(list, o.Doc)
			}
		}
	}
	return list
}

// otherNamespace returns a namespace for copies of objects. It returns "" for a cluster-scoped kind, or if none is
// known.
func (r *Run) otherNamespace() string {
	if !r.Kind.Namespaced {
		return ""
	}
	return r.Namespaces.Other()
}

// replacement returns edits that give doc other content under the same name. In an object without containers, they
// include additions.
func (r *Run) replacement(doc any) []edits.Edit {
	list := edits.Replacement(doc)
	if len(edits.ContainerLists(doc)) > 0 {
		return list
	}
	own := rand.New(rand.NewPCG(uint64(r.Seed), uint64(tree.Size(doc)))) // keeps later objects the same
	more := r.additions(own, doc)
	return append(list, more[:min(len(more), 3)]...)
}

// tryMemory checks L3 with a webhook that has handled other objects before x: for every second x its namesakes, and
// otherwise the previous objects of the run.
func (r *Run) tryMemory(i int, x *objects.Object, before []any) {
	if !r.uses(ObjectsBefore) || !r.uses(FreshInstances) {
		return
	}
	earlier := slices.Clone(before)
	if i%2 == 0 && r.uses(Namesakes) {
		earlier = r.namesakes(x, before)
		r.tryOtherNames(x, earlier)
	}
	if len(earlier) > 0 {
		r.try(&laws.Case{Law: laws.L3, Object: x.Doc, Variant: laws.Few, Before: earlier})
	}
}

// tryOtherNames checks L3 for webhooks behind a URL that remember objects by name. They have no fresh instance to
// compare with, so the check uses new names. The first namesake is the earlier object.
func (r *Run) tryOtherNames(x *objects.Object, namesakes []any) {
	inProcess := !slices.ContainsFunc(r.Webhooks, func(w *session.Webhook) bool { return !w.InProcess })
	if inProcess || len(namesakes) == 0 || r.Operation != admissionv1.Create {
		return
	}
	r.try(&laws.Case{Law: laws.L3, Object: x.Doc, Variant: laws.OtherName, Before: namesakes[:1]})
}

// tryParallel checks L3 with requests at the same time. It skips a webhook with other violations, because the check may
// end the process before they are reported: Go ends a program in which two goroutines write to a map at the same time.
func (r *Run) tryParallel(x *objects.Object, before []any) {
	if x == nil || r.Impure || len(r.Tally.Broken) > 0 || !r.uses(ParallelCalls) {
		return
	}
	others := slices.Clone(before)
	if r.uses(Namesakes) {
		others = slices.Concat(r.namesakes(x, nil), others)
	}
	r.try(&laws.Case{Law: laws.L3, Object: x.Doc, Variant: laws.Parallel, Before: others})
}

// tryUsers checks L1 and L2 with requests by several kinds of users.
func (r *Run) tryUsers(i int, x *objects.Object) {
	if !r.uses(OtherUsers) || !getsCostlyChecks(i) {
		return
	}
	for _, u := range session.Users {
		for _, law := range []laws.Law{laws.L2, laws.L1} {
			r.try(&laws.Case{Law: law, Object: x.Doc, Variant: laws.Variant(u.Name)})
		}
	}
}

// tryCopies checks L4a on copies of the result with another name or namespace. It also checks L5 on x with only the
// annotations and labels of the result, as if a user had copied them.
func (r *Run) tryCopies(i int, x, result *objects.Object, changes []tree.Change) {
	if !r.uses(Copies) || !getsCostlyChecks(i) || len(changes) == 0 {
		return
	}
	r.tryCopiedContainers(x)
	for _, list := range edits.Copies(result.Doc, r.otherNamespace()) {
		r.try(&laws.Case{Law: laws.L4a, Object: x.Doc, Edits: list})
	}
	if notes := edits.Notes(changes); len(notes) > 1 && len(notes) < len(changes) {
		r.try(&laws.Case{Law: laws.L5, Object: x.Doc, Edits: notes})
	}
}

// tryCopiedContainers checks L4b with copies of containers after the webhook has changed them.
func (r *Run) tryCopiedContainers(x *objects.Object) {
	if !r.uses(CopiedElements) {
		return
	}
	for _, e := range edits.CopiedElements(x.Doc, false) {
		if e.Path.Last() != "volumes" {
			r.try(&laws.Case{Law: laws.L4b, Object: x.Doc, Variant: laws.CopyOfResult, Edits: []edits.Edit{e}})
		}
	}
}

// trySwitchedOff checks L5 on the i-th object, a sample, without a part of its trigger. The author has written an element
// that the webhook otherwise adds. changes are the webhook's changes of the sample.
func (r *Run) trySwitchedOff(i int, doc any, changes []tree.Change) {
	if !r.uses(Triggers) || !r.uses(SimilarParts) || i >= len(r.inputs.triggers) || r.inputs.triggers[i] == nil {
		return
	}
	parts := few(edits.OnlyKeys(changes), mostSwitchedOff)
	for _, p := range r.inputs.triggers[i].Parts {
		if len(parts) == 0 {
			return
		}
		off, ok := tree.Remove(doc, p.Path)
		if !ok || r.ask(off) != trigger.Idle {
			text, isText := p.Value.(string)
			if off, ok = tree.Put(doc, p.Path, "other-"+text); !ok || !isText || r.ask(off) != trigger.Idle {
				continue
			}
		}
		for _, e := range parts {
			r.try(&laws.Case{Law: laws.L5, Object: off, Edits: []edits.Edit{e}})
		}
	}
}

// mostSwitchedOff is the maximum number of elements that are tried without each part of a trigger.
const mostSwitchedOff = 4

// tryRivals checks L12 and L11 with each rival that changes the object or its result. There are many simulated rivals
// that change more than their own parts. After the first objects, each object is checked with a third of them.
func (r *Run) tryRivals(i int, x, result *objects.Object) {
	for n, name := range r.RivalNames() {
		if r.IsCostly(name) && (i >= firstObjects && (i+n)%3 > 0) || !r.Meets(name, x, result) {
			continue
		}
		r.try(&laws.Case{Law: laws.L12, Object: x.Doc, Rival: name})
		if !r.OrderMatters(name) {
			r.try(&laws.Case{Law: laws.L11, Object: x.Doc, Rival: name})
		}
	}
}

// tryZeros checks L5 on x with a zero value where the webhook sets another value. It also checks L2 and L1 on x with
// another number of the same object set to 0, because some fields exclude each other.
func (r *Run) tryZeros(x, result *objects.Object) {
	if !r.uses(ZeroValues) {
		return
	}
	for _, e := range edits.ExplicitZeros(r.Changed(x, result)) {
		r.try(&laws.Case{Law: laws.L5, Object: x.Doc, Variant: laws.ExplicitZero, Edits: []edits.Edit{e}})
		if _, isText := e.Value.(string); isText {
			continue
		}
		for _, name := range few(r.inputs.numbers(e.Path[:len(e.Path)-1]), mostSiblings) {
			at := e.Path[:len(e.Path)-1].Member(name)
			if tree.Has(result.Doc, at) {
				continue
			}
			beside, ok := r.Edited(x, []edits.Edit{{What: edits.Put, Path: at, Value: int64(0)}})
			if !ok || !tree.Has(beside.Doc, at) {
				continue
			}
			for _, law := range []laws.Law{laws.L2, laws.L1} {
				r.try(&laws.Case{Law: law, Object: beside.Doc})
			}
		}
	}
}

// mostSiblings is the maximum number of fields beside one of the webhook that tryZeros sets to 0.
const mostSiblings = 6

// tryChanges checks L6 with later changes of a manifest: of its annotations and labels, and of the fields that the webhook
// changes. It also checks L6 with a manifest that lacks the status. The manifest is doc, without defaults. x is the object
// with defaults, and result the webhooks' result for it.
func (r *Run) tryChanges(doc any, x, result *objects.Object) {
	if !r.uses(LaterChanges) {
		return
	}
	for _, e := range edits.ChangedNotes(doc, r.isRead) {
		for _, value := range append([]string{e.Value.(string)}, few(r.ownTexts(), mostOwnValues)...) {
			if was, _ := tree.Get(doc, e.Path); was != value {
				e.Value = value
				r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.ChangedValue, Edits: []edits.Edit{e}})
			}
		}
	}
	for _, e := range edits.ChangedFields(doc, r.Changed(x, result)) {
		r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.ChangedValue, Edits: []edits.Edit{e}})
	}
	r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.NoStatus})
}

// isRead reports whether the webhook seems to read an annotation or label: it is a part of a trigger, or its key is in the
// webhook's source.
func (r *Run) isRead(p tree.Path) bool {
	key := p[len(p)-1].Name
	return slices.Contains(r.ownTexts(), key) || slices.Contains(r.ownKeys, key) || slices.ContainsFunc(r.Triggers, func(t Trigger) bool {
		return slices.ContainsFunc(t.Parts, func(part trigger.Part) bool { return part.Path.HasPrefix(p) })
	})
}

// replaced checks L6 with an update that replaces an object by its manifest. The manifest is doc, without defaults.
func (r *Run) replaced(doc any) {
	if r.uses(Replacements) {
		r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.Replaced})
	}
}
