// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"maps"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A rival is another party that changes objects.
type rival struct {
	name string
	// stranger is one that knows nothing of the webhook, and that nobody declared.
	stranger bool
	// of is the member of the subject whose rival it is. It is nil for a rival of the whole subject.
	of *Subject
	// start makes a fresh one.
	start func(r *run) func(*object) *outcome
}

// allRivals are those declared, the members of the subject, and some that every webhook has to live with.
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
	for _, name := range slices.Sorted(maps.Keys(strangers)) {
		if change := strangers[name]; r.opts.uses(builtinRivals) {
			add(rival{name: name, stranger: true, start: func(r *run) func(*object) *outcome { return r.strangely(change) }})
		}
	}
	return rivals
}

// takesPart has a subject act as a rival.
func (s Subject) takesPart(r *run) func(*object) *outcome {
	other := *r
	other.subject = s
	servers := other.fresh()
	return func(o *object) *outcome {
		defer func() { r.calls = other.calls }()
		other.calls = r.calls
		if !other.handles(r.operation) {
			return &outcome{answer: &answer{allowed: true, after: o}}
		}
		return other.f(servers, query{object: o})
	}
}

// strangely has an edit act as a rival.
func (r *run) strangely(change func(doc any) any) func(*object) *outcome {
	return func(o *object) *outcome {
		next, ok := r.valid(change(o.doc))
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

// strangers are well-behaved webhooks that only look after their own parts.
var strangers = map[string]func(doc any) any{
	"appends a sidecar":              func(doc any) any { return withSidecar(doc, false) },
	"inserts a sidecar" + frontRival: func(doc any) any { return withSidecar(doc, true) },
	"keeps its parts" + frontRival:   func(doc any) any { return kept(doc, true) },
	"keeps its parts last":           func(doc any) any { return kept(doc, false) },
	"sets an environment variable":   withVariable,
	"annotates and labels":           withNotes,
}

// withNotes annotates and labels an object and the Pod templates in it.
func withNotes(doc any) any {
	for _, meta := range allMetadata(doc) {
		for _, of := range []string{"annotations", "labels"} {
			if p := meta.Member(of).Member("rival.example.com/seen"); !tree.Has(doc, p) {
				if next, ok := tree.Put(doc, p, "yes"); ok {
					doc = next
				}
			}
		}
	}
	return doc
}

// allMetadata are the paths of the metadata of an object and of the Pod templates in it.
func allMetadata(doc any) []tree.Path {
	paths := []tree.Path{metadata}
	for _, containers := range containerLists(doc) {
		if spec := containers[:len(containers)-1]; len(spec) > 1 && spec.Last() == "spec" {
			paths = append(paths, spec[:len(spec)-1].Member("metadata"))
		}
	}
	return paths
}

// kept has the rival's containers and variables, before all others or behind them.
func kept(doc any, first bool) any {
	doc = withVariable(withSidecar(doc, first))
	tree.Lists(doc, func(p tree.Path, list []any) {
		i := slices.IndexFunc(list, func(e any) bool {
			fields, ok := e.(map[string]any)
			return ok && (fields["name"] == rivalName || fields["name"] == rivalVariable)
		})
		if i < 0 || p.Last() != "containers" && p.Last() != "initContainers" && p.Last() != "env" {
			return
		}
		others := slices.Delete(slices.Clone(list), i, i+1)
		at := len(others)
		if first {
			at = 0
		}
		if next, ok := tree.Put(doc, p, slices.Insert(others, at, list[i])); ok {
			doc = next
		}
	})
	return doc
}

// frontRival ends the names of those that put their parts before others.
const frontRival = " first"

const (
	rivalName     = "rival"
	rivalVariable = "RIVAL"
)

func withVariable(doc any) any {
	for _, p := range containerLists(doc) {
		doc = inEach(doc, p, func(at tree.Path) Edit {
			return Edit{What: Insert, Path: at.Member("env"), Value: map[string]any{"name": rivalVariable, "value": "here"}}
		})
	}
	return doc
}

func withSidecar(doc any, front bool) any {
	for _, p := range containerLists(doc) {
		if next, ok := (Edit{What: Insert, Path: p, Front: front, Value: rivalContainer()}).apply(doc); ok {
			doc = next
		}
	}
	return doc
}

func rivalContainer() map[string]any {
	return map[string]any{"name": rivalName, "image": "registry.example.com/rival:1"}
}

// containerLists are the paths of the lists of containers of a document.
func containerLists(doc any) (paths []tree.Path) {
	tree.Lists(doc, func(p tree.Path, _ []any) {
		if p.Last() == "containers" {
			paths = append(paths, slices.Clone(p))
		}
	})
	return paths
}

// inEach applies an edit in each element of a list.
func inEach(doc any, list tree.Path, edit func(at tree.Path) Edit) any {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	for _, element := range elements {
		if next, ok := edit(list.Element(tree.Identity(list, element), 0)).apply(doc); ok {
			doc = next
		}
	}
	return doc
}
