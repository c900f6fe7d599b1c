// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"maps"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
)

// A rival is another webhook or party that changes objects.
type rival struct {
	name string
	// stranger is one that knows nothing of the webhook, and that nobody declared.
	stranger bool
	// of is the member of the subject whose rival it is. It is nil for a rival of the whole subject.
	of *Subject
	// start makes a fresh one.
	start func(r *run) func(*objects.Object) *outcome
}

// allRivals returns the declared rivals, the other webhooks of the subject, and some rivals that are common in clusters.
func (r *run) allRivals() map[string]rival {
	rivals := map[string]rival{}
	add := func(other rival) {
		for n, name := 2, other.name; ; n++ {
			if _, taken := rivals[other.name]; !taken {
				break
			}
			other.name = fmt.Sprintf("%s (%d)", name, n) // two may have one name
		}
		rivals[other.name] = other
	}
	if r.opts.uses(declaredRivals) {
		for _, s := range r.opts.rivals {
			add(rival{name: s.webhooks[0].Name, start: s.takesPart})
		}
		for i, one := range r.subject.webhooks {
			for _, other := range r.subject.webhooks[i+1:] {
				add(rival{name: one.Name + " and " + other.Name, of: &Subject{[]*webhook{one}}, start: Subject{[]*webhook{other}}.takesPart})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(edits.Neighbours)) {
		if change := edits.Neighbours[name]; r.opts.uses(builtinRivals) {
			add(rival{name: name, stranger: true, start: func(r *run) func(*objects.Object) *outcome { return r.strangely(change) }})
		}
	}
	return rivals
}

// takesPart returns a rival that calls a subject.
func (s Subject) takesPart(r *run) func(*objects.Object) *outcome {
	other := *r
	other.subject = s
	servers := other.fresh()
	return func(o *objects.Object) *outcome {
		defer func() { r.calls = other.calls }()
		other.calls = r.calls
		if !other.handles(r.operation) {
			return &outcome{answer: &answer{allowed: true, after: o}}
		}
		return other.f(servers, query{object: o})
	}
}

// strangely returns a rival that makes an edit.
func (r *run) strangely(change func(doc any) any) func(*objects.Object) *outcome {
	return func(o *objects.Object) *outcome {
		next, ok := r.valid(change(o.Doc))
		if !ok {
			return &outcome{answer: &answer{message: "the API server refuses what the other webhook makes"}}
		}
		return &outcome{answer: &answer{allowed: true, after: next}}
	}
}

func (r *run) rivalNames() []string {
	var names []string
	for name := range r.rivals {
		if !slices.ContainsFunc(r.opts.exceptions, func(e Exception) bool { return e.Path == "rival:"+name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
