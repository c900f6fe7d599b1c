// SPDX-License-Identifier: Apache-2.0

package generate

import "github.com/admitkit/admitkit/pkg/idempotence/internal/tree"

// A trait is one shape that an object may have. It returns false where it does not fit; it never
// changes what is there already.
type trait struct {
	name  string
	apply func(*scope) bool
}

// A choice is traits of which an object gets at most one.
type choice struct {
	// weight times the density of the object is how likely the choice is; 0 is always.
	weight float64
	traits []trait
}

// one is a choice of one trait.
func one(weight float64, name string, apply func(*scope) bool) choice {
	return choice{weight, []trait{{name, apply}}}
}

// A scope is the part of an object that traits are given to: all of it, or a pod in it.
type scope struct {
	*build
	meta object
	// spec is the pod's, or the whole object if it has none.
	spec  object
	rules rules
}

// rules are what the API server demands of a pod, or of another object, in this place.
type rules struct {
	// template is set in pod templates, whose metadata is labels and annotations only.
	template bool
	// restart are the legal restart policies. The first one must be written if it is not Always.
	restart []string
	// noDeadline and noGates forbid activeDeadlineSeconds and schedulingGates.
	noDeadline, noGates bool
	// cluster is set for objects that are in no namespace.
	cluster bool
	// short names have at most 52 bytes and no dots.
	short bool
	// volumes are there although the pod does not name them: those of claim templates.
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

// setOne sets a member to one of the values.
func setOne(name string, values ...any) func(*scope) bool {
	return func(s *scope) bool { return put(s.spec, name, tree.Clone(pick(s.build, values...))) }
}
