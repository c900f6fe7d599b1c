// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A rival is another party that changes objects.
type rival struct {
	name string
	// start makes a fresh one.
	start func(r *run) func(*object) *outcome
}

// allRivals are those declared, and some that every webhook has to live with.
func (r *run) allRivals() map[string]rival {
	rivals := map[string]rival{}
	for _, s := range r.opts.rivals {
		if !r.opts.uses(declaredRivals) {
			break
		}
		name := s.webhooks[0].Name
		rivals[name] = rival{name, func(r *run) func(*object) *outcome {
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
		}}
	}
	for name, change := range strangers {
		if !r.opts.uses(builtinRivals) {
			break
		}
		rivals[name] = rival{name, func(r *run) func(*object) *outcome {
			return func(o *object) *outcome {
				next, ok := r.valid(change(o.doc))
				if !ok {
					return &outcome{answer: &answer{message: "the API server refuses what the other webhook makes"}}
				}
				return &outcome{answer: &answer{allowed: true, after: next}}
			}
		}}
	}
	return rivals
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
	"annotates and labels": func(doc any) any {
		for _, p := range []tree.Path{annotations.Member("rival.example.com/seen"), metadata.Member("labels").Member("rival.example.com/seen")} {
			if !tree.Has(doc, p) {
				if next, ok := tree.Put(doc, p, "yes"); ok {
					doc = next
				}
			}
		}
		return doc
	},
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
