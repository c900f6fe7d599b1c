// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math/rand/v2"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

const (
	// mostFilling is for what makes a custom resource one, such as spec.
	mostFilling = 0.9
	// mostOptional bounds the optional members of a full object.
	mostOptional = 300
)

// optional is how likely a member is: what is deep in an object is only there if all above it is.
func (b *build) optional(depth int) float64 {
	if b.full {
		if b.made++; b.made > mostOptional {
			return 0.1
		}
		return b.filling
	}
	least := b.filling
	for range depth {
		least *= 0.6
	}
	return max(b.density, least, 0.1)
}

// without reports whether an object is better without a member: it has as many as it may, or, where it is
// full, another that excludes this one.
func (b *build) without(n *node, o object, name string) bool {
	switch {
	case int64(len(o)) >= n.limits.maxProperties():
		return true
	case !b.full || n.limits == nil:
		return false
	}
	return slices.ContainsFunc(n.limits.oneOf, func(members []string) bool { return !hasAll(o, members) && slices.Contains(members, name) })
}

// Full returns an object, or the sample, with all fields of its schema, two elements in each list, and the next value of each enum. It
// omits fields where rules forbid them.
func (g *Generator) Full(r *rand.Rand, sample map[string]any, turn int) (obj map[string]any) {
	most := 0
	for _, filling := range []float64{1, 0.9, 0.75, 0.5} {
		b := &build{Generator: g, r: r, density: 0.03, filling: filling, full: true, turn: turn}
		next := b.object(sample)
		if g.Schema.valid(next) {
			return next
		}
		if sample == nil && b.repair(next) && tree.Size(next) > most {
			obj, most = next, tree.Size(next)
		}
	}
	if obj == nil {
		obj, _ = g.Object(r, sample)
	}
	return obj
}
