// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

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

// allMetadata returns the paths of the metadata of an object and of the Pod templates in it.
func allMetadata(doc any) []tree.Path {
	paths := []tree.Path{Metadata}
	for _, containers := range ContainerLists(doc) {
		if spec := containers[:len(containers)-1]; len(spec) > 1 && spec.Last() == "spec" {
			paths = append(paths, spec[:len(spec)-1].Member("metadata"))
		}
	}
	return paths
}

// kept returns a document that has the container and the variable of the rival, and its init container if there are
// others. If first is set, they are the first elements of their lists, otherwise the last.
func kept(doc any, first bool) any {
	doc = withVariable(withSidecar(doc, first))
	for _, p := range ContainerLists(doc) {
		list := p[:len(p)-1].Member("initContainers")
		if !tree.Has(doc, list) {
			continue
		}
		if next, ok := (Edit{What: Insert, Path: list, Front: first, Value: rivalInitContainer()}).Apply(doc); ok {
			doc = next
		}
	}
	tree.Lists(doc, func(p tree.Path, list []any) {
		i := slices.IndexFunc(list, func(e any) bool {
			fields, ok := e.(map[string]any)
			return ok && (fields["name"] == rivalName || fields["name"] == rivalVariable || fields["name"] == rivalInitName)
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

// FrontRival is the suffix of the names of simulated rivals that insert their elements at the start of a list.
const FrontRival = " first"

const (
	rivalName     = "rival"
	rivalVariable = "RIVAL"
	rivalInitName = "rival-init"
)

func withVariable(doc any) any {
	for _, p := range ContainerLists(doc) {
		doc = inEach(doc, p, func(at tree.Path) Edit {
			return Edit{What: Insert, Path: at.Member("env"), Value: map[string]any{"name": rivalVariable, "value": "here"}}
		})
	}
	return doc
}

func withSidecar(doc any, front bool) any {
	for _, p := range ContainerLists(doc) {
		if next, ok := (Edit{What: Insert, Path: p, Front: front, Value: rivalContainer()}).Apply(doc); ok {
			doc = next
		}
	}
	return doc
}

func rivalContainer() map[string]any {
	return map[string]any{"name": rivalName, "image": "registry.example.com/rival:1"}
}

func rivalInitContainer() map[string]any {
	return map[string]any{"name": rivalInitName, "image": "registry.example.com/rival-init:1"}
}

// ContainerLists returns the paths of a document's lists of containers.
func ContainerLists(doc any) (paths []tree.Path) {
	tree.Lists(doc, func(p tree.Path, _ []any) {
		if p.Last() == "containers" {
			paths = append(paths, slices.Clone(p))
		}
	})
	return paths
}

// inEach applies an edit to each element of a list.
func inEach(doc any, list tree.Path, edit func(at tree.Path) Edit) any {
	value, _ := tree.Get(doc, list)
	elements, _ := value.([]any)
	for _, element := range elements {
		if next, ok := edit(list.Element(tree.Identity(list, element), 0)).Apply(doc); ok {
			doc = next
		}
	}
	return doc
}
