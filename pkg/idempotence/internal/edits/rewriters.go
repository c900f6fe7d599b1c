// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"cmp"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mirror is the registry that a simulated rival sets in all images.
const mirror = "mirror.rival.example.com/"

// mirrored replaces the registry in the image of each container by the mirror.
func mirrored(doc any) any {
	return inContainers(doc, func(c Fields) {
		image, _ := c["image"].(string)
		if image == "" || strings.HasPrefix(image, mirror) {
			return
		}
		first, rest, found := strings.Cut(image, "/")
		if !found || !strings.ContainsAny(first, ".:") && first != "localhost" {
			rest = image // it has no registry
		}
		c["image"] = mirror + rest
	})
}

// wrapper is the program that a simulated rival puts before each command.
const wrapper = "/rival/wrap"

// wrapped puts a program before the command of each container, unless the command already has it.
func wrapped(doc any) any {
	return inContainers(doc, func(c Fields) {
		command, _ := c["command"].([]any)
		if len(command) > 0 && !slices.Contains(command, any(wrapper)) {
			c["command"] = slices.Insert(slices.Clone(command), 0, any(wrapper))
		}
	})
}

// inContainers returns a document with change applied to each container and init container. It does not modify doc.
func inContainers(doc any, change func(c Fields)) any {
	var lists []tree.Path
	tree.Lists(doc, func(p tree.Path, _ []any) {
		if p.Last() == "containers" || p.Last() == "initContainers" {
			lists = append(lists, slices.Clone(p))
		}
	})
	for _, p := range lists {
		value, _ := tree.Get(doc, p)
		list, _ := tree.Clone(value).([]any)
		for _, element := range list {
			if c, ok := element.(Fields); ok {
				change(c)
			}
		}
		if !tree.Equal(value, list) {
			if next, ok := tree.Put(doc, p, list); ok {
				doc = next
			}
		}
	}
	return doc
}

// Unordered are the lists whose order has no meaning.
var Unordered = []string{"volumes", "volumeMounts", "tolerations", "imagePullSecrets", "hostAliases"}

// sets are lists of texts in built-in objects whose order has no meaning.
var sets = []string{"tls.hosts", "spec.accessModes", "spec.policyTypes"}

// sorted sorts the lists whose order has no meaning.
func sorted(doc any) any {
	tree.Lists(doc, func(p tree.Path, list []any) {
		if !slices.Contains(Unordered, p.Last()) && !slices.Contains(sets, fieldOf(p)) {
			return
		}
		ordered := slices.Clone(list)
		slices.SortStableFunc(ordered, func(a, b any) int { return cmp.Compare(tree.Identity(p, a), tree.Identity(p, b)) })
		if tree.Equal(ordered, list) {
			return
		}
		if next, ok := tree.Put(doc, p, ordered); ok {
			doc = next
		}
	})
	return doc
}

// fieldOf returns the last two names in a path, such as "tls.hosts".
func fieldOf(p tree.Path) string {
	var names []string
	for _, step := range p {
		if !step.Element {
			names = append(names, step.Name)
		}
	}
	return strings.Join(names[max(0, len(names)-2):], ".")
}

// withName sets the name of an object that has only a generateName, before the API server does so.
func withName(doc any) any {
	if name, _ := tree.Get(doc, Metadata.Member("name")); name != nil && name != "" {
		return doc
	}
	value, _ := tree.Get(doc, Metadata.Member("generateName"))
	prefix, _ := value.(string)
	if prefix == "" {
		return doc
	}
	next, ok := tree.Put(doc, Metadata.Member("name"), prefix[:min(len(prefix), 50)]+rivalName)
	if !ok {
		return doc
	}
	return next
}

// stripped removes the annotations of the object and its Pod templates, except for those of Kubernetes.
func stripped(doc any) any {
	for _, meta := range allMetadata(doc) {
		value, _ := tree.Get(doc, meta.Member("annotations"))
		notes, _ := value.(Fields)
		for key := range notes {
			domain, _, _ := strings.Cut(key, "/")
			if strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") {
				continue
			}
			if next, ok := tree.Remove(doc, meta.Member("annotations").Member(key)); ok {
				doc = next
			}
		}
	}
	return doc
}

// withdrawn adds an init container in the first call, and removes it in later calls. A label records the first call.
func withdrawn(doc any) any {
	done := Metadata.Member("labels").Member("rival.example.com/withdrawn")
	for _, p := range ContainerLists(doc) {
		list := p[:len(p)-1].Member("initContainers")
		e := Edit{What: Insert, Path: list, Value: rivalContainer()}
		if tree.Has(doc, done) {
			e = Edit{What: Remove, Path: list.Element(tree.Identity(list, rivalContainer()), 0)}
		}
		if next, ok := e.Apply(doc); ok {
			doc = next
		}
	}
	if len(ContainerLists(doc)) == 0 || tree.Has(doc, done) {
		return doc
	}
	next, ok := tree.Put(doc, done, "yes")
	if !ok {
		return doc
	}
	return next
}
