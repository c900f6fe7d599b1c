// SPDX-License-Identifier: Apache-2.0

package generate

import "github.com/admitkit/admitkit/pkg/idempotence/internal/tree"

// A trait is one property of an object. apply returns false if the property does not fit the object. It
// never changes existing values.
type trait struct {
	name  string
	apply func(*scope) bool
}

// A choice is a list of traits. An object gets at most one of them.
type choice struct {
	// weight times the density of the object is the probability of the choice. 0 means always.
	weight float64
	traits []trait
}

// one returns a choice of one trait.
func one(weight float64, name string, apply func(*scope) bool) choice {
	return choice{weight, []trait{{name, apply}}}
}

// A scope is the part of an object that gets traits: the whole object, or a Pod in it.
type scope struct {
	*build
	meta object
	// spec is the Pod's spec, or the whole object if it has no Pod.
	spec  object
	rules rules
}

// rules are the requirements of the API server for a Pod or another object.
type rules struct {
	// template is set in Pod templates. Their metadata has only labels and annotations.
	template bool
	// restart has the legal restart policies. The first one must be set if it is not Always.
	restart []string
	// noDeadline and noGates forbid activeDeadlineSeconds and schedulingGates.
	noDeadline, noGates bool
	// cluster is set for cluster-scoped objects.
	cluster bool
	// short limits names to 52 bytes without dots.
	short bool
	// volumes has the names of claim templates, whose volumes the Pod does not list.
	volumes []string
}

func (s *scope) run(choices []choice) {
	for _, c := range choices {
		if c.weight > 0 && !s.chance(c.weight*s.density) {
			continue
		}
		first := s.r.IntN(len(c.traits))
		for i := range c.traits {
			t := &c.traits[(first+i)%len(c.traits)]
			if !s.Without[t.name] && t.apply(s) {
				s.traits = append(s.traits, t.name)
				break
			}
		}
	}
}

// setOne returns a trait that sets a member to one of the values.
func setOne(name string, values ...any) func(*scope) bool {
	return func(s *scope) bool { return put(s.spec, name, tree.Clone(pick(s.build, values...))) }
}
