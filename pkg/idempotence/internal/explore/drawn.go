// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// SetAside reports whether the other laws can be checked in spite of a finding about L3: the webhook keeps its random
// values in later calls, or they are all single values at known paths. If so, SetAside adds exceptions for them, and
// mentions this in the summary of the finding.
func (r *Run) SetAside(f *laws.Finding) bool {
	if f.Mode != laws.Varies {
		return false
	}
	changes, ok := r.Differences(f)
	x, valid := r.Valid(f.Case.Object)
	if !ok || !valid || len(changes) == 0 {
		return false
	}
	paths, law, kept := laws.Patterns(changes), laws.L3, "Later calls keep the value, so the"
	if !r.keeps(x, changes) {
		if paths, ok = singleValues(changes); !ok {
			return false
		}
		law, kept = "", "The"
	}
	for _, path := range paths {
		r.Exceptions = append(r.Exceptions, laws.Exception{Path: path, Law: law})
	}
	f.Summary += ". " + kept + " other laws are checked without " + strings.Join(paths, ", ")
	return true
}

// singleValues returns the paths of changes that only replace single values. The path of a value in a container covers
// all containers. It returns false if a change does something else, or if an element on the way has no short key.
func singleValues(changes []tree.Change) (paths []string, ok bool) {
	for _, c := range changes {
		if c.Kind != tree.Replaced {
			return nil, false
		}
		p := slices.Clone(c.Path)
		for i, step := range p {
			switch {
			case strings.ContainsAny(step.Key, "{}[]*\""):
				return nil, false
			case step.Element && strings.HasSuffix(strings.ToLower(p[i-1].Name), "containers"):
				p[i].Key, p[i].Nth = "*", 0
			}
		}
		if text := p.String(); !slices.Contains(paths, text) {
			paths = append(paths, text)
		}
	}
	return paths, true
}

// callsToKeep is the number of calls after which a random value counts as kept. A value that depends on the order of a
// Go map is often the same in a few calls.
const callsToKeep = 100

// keeps reports whether further calls, on any instance, do not change the random values that the first call has set.
func (r *Run) keeps(x *objects.Object, drawn []tree.Change) bool {
	if slices.ContainsFunc(drawn, func(c tree.Change) bool { return c.Kind == tree.Moved }) {
		return false
	}
	out := r.Request(r.NewInstances(), session.Query{Object: x})
	for range callsToKeep {
		if !out.OK() {
			return false
		}
		again := r.Request(r.NewInstances(), session.Query{Object: out.After})
		if !again.OK() || !tree.Equal(again.After.Doc, out.After.Doc) {
			return false
		}
		out = again
	}
	return true
}

// varies checks L3 on the objects of a finding about another law, if that finding compares single values. It reports
// whether the finding disappears once the random values of the webhook are set aside: then it has the same cause as
// the finding about L3.
func (r *Run) varies(f *laws.Finding) bool {
	changes, ok := r.Differences(f)
	if _, single := singleValues(changes); !ok || !single || len(changes) == 0 || f.Case.Law == laws.L3 || f.Case.Old != nil || r.Impure {
		return false
	}
	before := r.Tally.violations(laws.L3)
	for _, out := range f.Outcomes[max(0, len(f.Outcomes)-2):] {
		if len(out.Calls) == 0 {
			continue
		}
		if sent, err := tree.Decode(out.Calls[0].Exchange.Object); err == nil {
			r.try(&laws.Case{Law: laws.L3, Object: sent})
		}
	}
	if r.Tally.violations(laws.L3) == before {
		return false
	}
	again, _ := r.Check(&f.Case)
	return again == nil
}
