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
)

// Some checks are made on the first objects only, and then on one in seldom objects, because they cost much and seldom
// depend on the object.
const firstObjects, seldom = 3, 8

// isPointed reports whether the i-th object is one for the checks that are seldom made.
func isPointed(i int) bool { return i < firstObjects || i%seldom == 0 }

// namesakes returns objects that a webhook may take for x, because their name, generateName and namespace are the same,
// or all but the namespace: x with other content, x in another namespace, and the objects in before under the name of x.
// In a cluster such objects follow each other, with different uids.
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

// otherNamespace returns a namespace for copies of objects, or "".
func (r *Run) otherNamespace() string {
	if !r.Kind.Namespaced {
		return ""
	}
	return r.Namespaces.Other()
}

// replacement returns edits that make another object of doc. For a kind without containers, they include additions.
func (r *Run) replacement(doc any) []edits.Edit {
	list := edits.Replacement(doc)
	if len(edits.ContainerLists(doc)) > 0 {
		return list
	}
	own := rand.New(rand.NewPCG(uint64(r.Seed), uint64(tree.Size(doc)))) // keeps later objects the same
	more := r.additions(own, doc)
	return append(list, more[:min(len(more), 3)]...)
}

// tryMemory checks L3 after other objects. Half of the objects follow namesakes, and the others what came before them.
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

// tryOtherNames checks L3 with new names, for webhooks behind a URL: no fresh instance can be compared with them. The
// other object has the content of the first of the namesakes.
func (r *Run) tryOtherNames(x *objects.Object, namesakes []any) {
	inProcess := !slices.ContainsFunc(r.Webhooks, func(w *session.Webhook) bool { return !w.InProcess })
	if inProcess || len(namesakes) == 0 || r.Operation != admissionv1.Create {
		return
	}
	r.try(&laws.Case{Law: laws.L3, Object: x.Doc, Variant: laws.OtherName, Before: namesakes[:1]})
}

// tryParallel checks L3 with requests at the same time. It does so only for a webhook without other violations, because
// it may end the process: Go ends a program that writes to a map at the same time as another goroutine.
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
	if !r.uses(OtherUsers) || !isPointed(i) {
		return
	}
	for _, u := range session.Users {
		for _, law := range []laws.Law{laws.L2, laws.L1} {
			r.try(&laws.Case{Law: law, Object: x.Doc, Variant: laws.Variant(u.Name)})
		}
	}
}

// tryCopies checks L4a on copies of the result under another identity, and L5 on objects that have only the annotations
// and labels of the result, as with copied metadata.
func (r *Run) tryCopies(i int, x, result *objects.Object, changes []tree.Change) {
	if !r.uses(Copies) || !isPointed(i) || len(changes) == 0 {
		return
	}
	for _, list := range edits.Copies(result.Doc, r.otherNamespace()) {
		r.try(&laws.Case{Law: laws.L4a, Object: x.Doc, Edits: list})
	}
	if notes := edits.Notes(changes); len(notes) > 1 && len(notes) < len(changes) {
		r.try(&laws.Case{Law: laws.L5, Object: x.Doc, Edits: notes})
	}
}

// tryRivals checks L12 and L11 with each rival that changes the object or its result. After the first objects, only a
// third of the simulated rivals that change more than their own parts is tried with each object.
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

// replaced checks L6 on an object that is replaced by its manifest doc, without defaults.
func (r *Run) replaced(doc any) {
	if r.uses(Replacements) {
		r.try(&laws.Case{Law: laws.L6, Object: doc, Variant: laws.Replaced})
	}
}
