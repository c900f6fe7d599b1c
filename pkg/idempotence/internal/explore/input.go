// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/trigger"
)

// Inputs generates the objects of one kind.
type Inputs struct {
	samples   []map[string]any
	made      generate.Generator
	furnished bool
	defined   bool            // a CustomResourceDefinition defines the kind
	parts     []tree.Path     // see hollow
	full      any             // an object with all fields of the schema, cached by Value
	written   map[string]bool // fields to which the webhook has written values that are not zero; see Varies

	seed     int64
	valid    func(doc any) bool
	triggers []*Trigger // of the samples, or nil for a sample that the webhook does not change
	found    *Trigger   // found without samples, or nil
	switched any        // a sample with a switch whose effects are being tested, or nil
}

// NewInputs returns the generator for a kind. It ignores samples of other kinds.
func NewInputs(k *objects.Kind, samples []any) *Inputs {
	in := &Inputs{furnished: true, written: map[string]bool{}}
	if k.Namespaced {
		in.made.Namespace = k.Namespace
	}
	for _, s := range samples {
		if gvk, err := objects.GVKOf(s); err == nil && gvk == k.GroupVersionKind {
			in.samples = append(in.samples, s.(map[string]any))
		}
	}
	switch {
	case k.Custom != nil:
		in.made.Schema, in.defined = k.Custom.Schema, true
	case k.GoType != nil:
		in.made.Schema = generate.ForType(k.GoType)
	}
	return in
}

// restrict disables the families in unused.
func (in *Inputs) restrict(unused map[Family]bool) {
	if unused[Samples] && in.made.Schema != nil {
		in.samples = nil
	}
	if unused[Generated] && in.made.Schema != nil {
		in.made.Without = map[string]bool{}
		for _, trait := range in.made.Traits() {
			in.made.Without[trait] = true
		}
	}
	in.furnished = !unused[FurnishedObject]
}

// object generates the i-th object. The first objects are the samples themselves, or a minimal object if there are
// none. The next object has every kind of field. Each later object adds random fields to one of the samples in turn.
// Most objects have the parts of the webhook's trigger, if it is known.
func (in *Inputs) object(random *rand.Rand, i int) any {
	doc := in.plainObject(random, i)
	switch n := len(in.samples); {
	case n > 0 && i >= n && in.triggers != nil && in.triggers[i%n] != nil:
		return in.triggers[i%n].clear(in.samples[i%n], doc, in.valid)
	case in.found != nil && (i < max(n, 1)+1 || i%untriggered < untriggered-1):
		return in.found.switchOn(doc, in.valid)
	}
	return doc
}

func (in *Inputs) plainObject(random *rand.Rand, i int) any {
	var sample map[string]any
	n := len(in.samples)
	if n > 0 {
		if sample = in.samples[i%n]; i < n || in.made.Schema == nil {
			return tree.Clone(sample)
		}
	}
	if turn := i - max(n, 1); in.isFull(turn) {
		full := in.made.Full(random, sample, turn/fullEvery)
		if turn == 0 {
			return edits.Furnish(full)
		}
		return full
	}
	if n > 0 && in.triggers != nil && in.triggers[i%n] != nil {
		own := rand.New(rand.NewPCG(uint64(in.seed), uint64(i))) // keeps the other random choices the same
		sample, _ = in.triggers[i%n].vary(own, sample, i, in.valid).(map[string]any)
	}
	object, _ := in.made.Object(random, sample)
	if i == max(n, 1) && in.furnished {
		return edits.Furnish(object)
	}
	return object
}

// fullEvery is n if every n-th generated custom resource has all fields of its schema.
const fullEvery = 4

// isFull reports whether an object gets all fields of its schema. turn is the number of the object, counted from 0
// after the samples.
func (in *Inputs) isFull(turn int) bool {
	return in.defined && in.furnished && turn >= 0 && turn%fullEvery == 0
}

// Given reports whether a sample has a value at p. If so, the webhook may change the value on purpose. A copy of an
// element (see edits.TwinSuffix) is treated like the original.
func (in *Inputs) Given(p tree.Path) bool {
	p = slices.Clone(p)
	for i := range p {
		p[i].Key = strings.TrimSuffix(p[i].Key, edits.TwinSuffix)
	}
	for _, s := range in.samples {
		if tree.Has(s, p) {
			return true
		}
	}
	if in.switched != nil && tree.Has(in.switched, p) {
		return true
	}
	return in.found != nil && slices.ContainsFunc(in.found.Parts, func(part trigger.Part) bool {
		return part.Path.HasPrefix(p) || p.HasPrefix(part.Path)
	})
}

// GivenIn reports whether a sample has a value at p, in any elements of the lists on the way.
func (in *Inputs) GivenIn(p tree.Path) bool {
	return slices.ContainsFunc(in.samples, func(s map[string]any) bool { return hasIn(s, p) })
}

func hasIn(doc any, p tree.Path) bool {
	if len(p) == 0 {
		return true
	}
	if p[0].Element {
		list, _ := doc.([]any)
		return slices.ContainsFunc(list, func(element any) bool { return hasIn(element, p[1:]) })
	}
	object, _ := doc.(map[string]any)
	value, ok := object[p[0].Name]
	return ok && hasIn(value, p[1:])
}

// loses reports whether a smaller document lacks a trigger that the document has. A smaller case keeps its trigger, so
// that its report shows why the webhook acts.
func (in *Inputs) loses(doc, smaller any) bool {
	return slices.ContainsFunc(append(slices.Clone(in.triggers), in.found), func(t *Trigger) bool {
		return t != nil && t.holds(doc) && !t.holds(smaller)
	})
}

// Same reports whether two list elements have equal keys by the schema.
func (in *Inputs) Same(list tree.Path, a, b any) bool {
	return in.made.Schema != nil && in.made.Schema.Same(list, a, b)
}

// numbers returns the names of the members of the object at a path that can be numbers by the schema.
func (in *Inputs) numbers(at tree.Path) []string {
	if in.made.Schema == nil {
		return nil
	}
	return in.made.Schema.Numbers(at)
}

// IsMap reports whether the schema declares the value at p as a map, whose keys can have any name.
func (in *Inputs) IsMap(p tree.Path) bool {
	if in.made.Schema == nil {
		return false
	}
	collection, _ := in.made.Schema.Keys(p)
	return collection == generate.Map
}

// Value returns a value that the schema of a custom resource allows at p.
func (in *Inputs) Value(p tree.Path) (any, bool) {
	if !in.defined {
		return nil, false
	}
	if in.full == nil {
		in.full = in.made.Full(rand.New(rand.NewPCG(1, 0)), nil, 0)
	}
	return tree.Get(in.full, p)
}

// noteValues records the fields to which the webhook writes values that are not zero.
func (in *Inputs) noteValues(before, after any) {
	for _, c := range tree.Changes(before, after) {
		tree.Leaves(c.New, func(p tree.Path, leaf any) {
			if !edits.IsZero(leaf) {
				in.written[fieldOf(slices.Concat(c.Path, p))] = true
			}
		})
	}
}

// Varies reports whether the webhook has written a value that is not zero to p in some object.
func (in *Inputs) Varies(p tree.Path) bool { return in.written[fieldOf(p)] }

// fieldOf returns a text for a path that is the same for all elements of a list.
func fieldOf(p tree.Path) string {
	p = slices.Clone(p)
	for i := range p {
		if p[i].Element {
			p[i] = tree.Step{Element: true}
		}
	}
	return p.String()
}
