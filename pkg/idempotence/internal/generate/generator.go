// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Generator generates objects of one kind. It keeps no state and is safe for concurrent use.
type Generator struct {
	Schema *Schema
	// Namespace is the namespace of the objects. Only some of them name it in their metadata. If it
	// is empty, none do.
	Namespace string
	// Update is set for stored objects, which may have fields that the API server forbids at creation.
	Update bool
	// Without lists traits that no object gets.
	Without map[string]bool
}

// densities are the possible probabilities of optional parts in an object. Most are low, because a small counterexample
// is easier to read.
var densities = []float64{0, 0.03, 0.08, 0.08, 0.2, 0.2, 0.6}

// attempts bounds how often an invalid object is generated again, each time with a lower density.
const attempts = 4

// Object returns a random valid object and the names of its traits. With a sample, it adds random traits to the sample
// and keeps all its values. If the sample is invalid, so is the object.
func (g *Generator) Object(r *rand.Rand, sample map[string]any) (obj map[string]any, traits []string) {
	density, filling := densities[r.IntN(len(densities))], mostFilling
	for range attempts {
		b := &build{Generator: g, r: r, density: density}
		f := &filler{build: b, filling: filling}
		if obj = f.object(sample); g.Schema.valid(obj) {
			return obj, b.names()
		}
		if sample == nil && g.repair(obj) {
			return obj, b.names()
		}
		density /= 3
		filling /= 2
	}
	if sample != nil {
		return clone(sample), nil
	}
	return obj, nil // no valid object was found
}

// names returns the traits without duplicates.
func (b *build) names() []string {
	slices.Sort(b.traits)
	return slices.Compact(b.traits)
}

func clone(o object) object { return tree.Clone(o).(object) }

func (s *Schema) valid(o object) bool { return s.check == nil || len(s.check(o)) == 0 }

func (f *filler) object(sample object) object {
	s := f.Schema
	obj := object{}
	switch {
	case sample != nil:
		obj = clone(sample)
	case s.kind != nil:
		obj = s.kind.make(f.build)
	}
	if s.GVK.Kind != "" {
		put(obj, "apiVersion", s.GVK.GroupVersion().String())
		put(obj, "kind", s.GVK.Kind)
	}
	meta := child(obj, "metadata")
	if meta == nil {
		return obj
	}
	whole := &scope{build: f.build, meta: meta, spec: obj, rules: rules{cluster: s.Cluster}}
	if s.kind != nil {
		whole.rules = s.kind.rules
	}
	whole.run(metaTraits)
	switch {
	case s.kind != nil:
		whole.run(s.kind.traits)
		f.pod(whole)
	case s.check != nil:
		f.fillMembers(s.root, obj, 0)
	}
	return obj
}

// pod adds traits to the Pod in an object of a built-in kind.
func (b *build) pod(whole *scope) {
	k := b.Schema.kind
	if k.pod == nil {
		return
	}
	holder := k.pod(whole.spec)
	if holder == nil {
		return
	}
	rules := k.podRules
	rules.volumes = claimTemplates(whole.spec)
	b.podIn(holder, rules)
}

// podIn adds traits to the Pod or template in holder.
func (b *build) podIn(holder object, r rules) {
	_, had := holder["metadata"]
	s := &scope{build: b, meta: child(holder, "metadata"), spec: child(holder, "spec"), rules: r}
	if s.spec == nil || s.meta == nil {
		return
	}
	if r.template {
		s.run(templateMetaTraits)
	}
	s.run(podTraits)
	if !had && len(s.meta) == 0 && s.chance(0.7) {
		delete(holder, "metadata")
	}
}

// claimTemplates returns the names of the volumes that a StatefulSet adds to its Pods.
func claimTemplates(obj object) (names []string) {
	spec, _ := obj["spec"].(object)
	for _, claim := range objects(spec, "volumeClaimTemplates") {
		if meta, _ := claim["metadata"].(object); textOf(meta, "name") != "" {
			names = append(names, textOf(meta, "name"))
		}
	}
	return names
}

// Traits returns the names of all traits of the kind, sorted.
func (g *Generator) Traits() []string {
	names := map[string]bool{}
	collect := func(choices []choice) {
		for _, c := range choices {
			for _, t := range c.traits {
				names[t.name] = true
			}
		}
	}
	collect(metaTraits)
	if k := g.Schema.kind; k != nil {
		collect(k.traits)
		if k.pod != nil {
			collect(podTraits)
		}
		if k.podRules.template {
			collect(templateMetaTraits)
		}
	} else if g.Schema.check != nil {
		for _, name := range fillTraits {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
