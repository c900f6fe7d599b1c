// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math/rand/v2"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

const (
	// mostFilling is the highest probability of each top-level member of a custom resource, such as spec. Without these
	// members, the resource is nearly empty.
	mostFilling = 0.9
	// mostOptional is the number of optional members of a full object after which it gets few others.
	mostOptional = 300
)

// optional returns the probability of an optional member. In an object that is not full, it falls with the depth.
func (f *filler) optional(depth int) float64 {
	if f.full {
		if f.made++; f.made > mostOptional {
			return 0.1
		}
		return f.filling
	}
	least := f.filling
	for range depth {
		least *= 0.6
	}
	return max(f.density, least, 0.1)
}

// without reports whether a member must be omitted: the object has the maximum number of members, or,
// in a full object, another member excludes this one.
func (f *filler) without(n *node, o object, name string) bool {
	switch {
	case int64(len(o)) >= n.limits.maxProperties():
		return true
	case !f.full || n.limits == nil:
		return false
	}
	return slices.ContainsFunc(n.limits.oneOf, func(members []string) bool { return !hasAll(o, members) && slices.Contains(members, name) })
}

// Full returns an object, or the sample, with all fields of its schema and two elements in each list. turn selects the
// value of each enum. Full omits fields that rules forbid.
func (g *Generator) Full(r *rand.Rand, sample map[string]any, turn int) (obj map[string]any) {
	most := 0
	for _, filling := range []float64{1, 0.9, 0.75, 0.5} {
		f := &filler{build: &build{Generator: g, r: r, density: 0.03}, filling: filling, full: true, turn: turn}
		next := f.object(sample)
		if g.Schema.valid(next) {
			return next
		}
		if sample == nil && g.repair(next) && tree.Size(next) > most {
			obj, most = next, tree.Size(next)
		}
	}
	if obj == nil {
		obj, _ = g.Object(r, sample)
	}
	return obj
}
