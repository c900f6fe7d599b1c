// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostAimed is the maximum number of fields that a rival sets because the tested webhook sets them.
const mostAimed = 8

// sameFields returns a function that sets absent fields of a document. They are fields that the tested webhook adds to
// x, with other values.
func sameFields(x, result any) func(doc any) any {
	var puts []Edit
	for _, c := range Single(tree.Changes(x, result)) {
		if c.Kind != tree.Added || len(puts) == mostAimed || isIdentity(c.Path) {
			continue
		}
		value := c.New
		variable, isVariable := value.(Fields)
		if isVariable && c.Path.Last() == "env" && variable["value"] != nil {
			puts = append(puts, putPart(c.Path, Fields{"name": variable["name"], "value": "of-another-webhook"}))
			continue
		}
		if other := otherValue(c.Path, value); other != nil && !c.Path[len(c.Path)-1].Element {
			puts = append(puts, putPart(c.Path, other))
		}
	}
	return func(doc any) any {
		for _, e := range puts {
			if e.What == Put && tree.Has(doc, e.Path) {
				continue
			}
			if next, ok := e.Apply(doc); ok {
				doc = next
			}
		}
		return doc
	}
}

// removesLast returns a function that removes the last container of each list of x with several containers.
func removesLast(x, _ any) func(doc any) any {
	var gone []tree.Path
	for _, p := range ContainerLists(x) {
		value, _ := tree.Get(x, p)
		if list, _ := value.([]any); len(list) > 1 {
			gone = append(gone, p.Element(tree.Identity(p, list[len(list)-1]), 0))
		}
	}
	return func(doc any) any {
		for _, p := range gone {
			if next, ok := tree.Remove(doc, p); ok {
				doc = next
			}
		}
		return doc
	}
}

// Zeros returns the paths to which a webhook adds a zero value: an empty text, map or list, null, 0 or false, or a map
// that has only such values. changes are the changes that the webhook makes. A webhook may set 0 or false on purpose.
// So these count only if other zero values count, too. In a custom resource, they also count if one object gets at
// least three of them and one is a number, as from a Go type without omitempty. If varies returns true for a path, the
// webhook writes other values there, and any zero value counts. An annotation or label counts only then.
func Zeros(changes []tree.Change, custom bool, varies func(p tree.Path) bool) (paths []tree.Path) {
	var unsure []tree.Path
	for _, c := range changes {
		if c.Kind != tree.Added || c.Path[0].Name == "status" {
			continue
		}
		tree.Leaves(c.New, func(p tree.Path, leaf any) {
			if at := slices.Concat(c.Path, p); IsZero(leaf) && varies(at) {
				paths = append(paths, at)
			}
		})
		switch {
		case c.Path[0].Name == "metadata" || IsNote(c.Path) || c.Path[len(c.Path)-1].Element || !IsZero(c.New) || varies(c.Path):
		case MayBeMeant(c.New):
			unsure = append(unsure, c.Path)
		default:
			paths = append(paths, c.Path)
		}
	}
	if len(paths) > 0 {
		paths = append(paths, unsure...)
	} else if custom {
		paths = inSameObject(unsure, changes)
	}
	return paths[:min(len(paths), mostAimed)]
}

// fewestOfType is the minimum number of zero values in one object that look like those of a Go type.
const fewestOfType = 3

// inSameObject returns the paths whose parents have at least fewestOfType of the paths as members, if one of these leads to
// a number.
func inSameObject(paths []tree.Path, changes []tree.Change) (out []tree.Path) {
	numeric := func(p tree.Path) bool {
		return slices.ContainsFunc(changes, func(c tree.Change) bool {
			switch c.New.(type) {
			case int64, float64:
				return slices.Equal(c.Path, p)
			}
			return false
		})
	}
	for _, p := range paths {
		var inParent []tree.Path
		for _, other := range paths {
			if slices.Equal(p[:len(p)-1], other[:len(other)-1]) {
				inParent = append(inParent, other)
			}
		}
		if len(inParent) >= fewestOfType && slices.ContainsFunc(inParent, numeric) {
			out = append(out, p)
		}
	}
	return out
}

// MayBeMeant reports whether a zero value has a number or a boolean, which a webhook may set on purpose.
func MayBeMeant(zero any) (meant bool) {
	tree.Leaves(zero, func(_ tree.Path, leaf any) {
		switch leaf.(type) {
		case bool, int64, float64:
			meant = true
		}
	})
	return meant
}

// IsZero reports whether all leaves of a value are zero values.
func IsZero(value any) bool {
	zero := true
	tree.Leaves(value, func(_ tree.Path, leaf any) {
		switch v := leaf.(type) {
		case string:
			zero = zero && v == ""
		case bool:
			zero = zero && !v
		case int64:
			zero = zero && v == 0
		case float64:
			zero = zero && v == 0
		}
	})
	return zero
}

// Fillings returns values, not zero, that another party may set at the path of a zero value. The API server may reject
// some of them.
func Fillings(p tree.Path, zero any) []any {
	switch zero.(type) {
	case bool:
		return []any{true}
	case int64, float64:
		return []any{int64(1)}
	case []any:
		return []any{[]any{rivalName}, []any{Fields{"name": rivalName}}}
	}
	known := map[string]any{
		"securityContext": Fields{"runAsNonRoot": true},
		"resources":       Fields{"requests": Fields{"cpu": "10m"}},
		"metadata":        Fields{"labels": Fields{rivalName: "here"}},
		"affinity":        Fields{"podAntiAffinity": Fields{}},
	}
	values := []any{rivalName, "1", Fields{rivalName: "here"}, []any{rivalName}, int64(1), true}
	if text, ok := zero.(Fields); ok {
		values = slices.Insert(values[2:3:3], 1, any(fullOf(text)))
	}
	if value, ok := known[p.Last()]; ok {
		values = slices.Insert(values, 0, value)
	}
	return values
}

// fullOf returns a copy of a map of zero values, with another value in place of each.
func fullOf(zeros Fields) Fields {
	out := Fields{}
	for name, zero := range zeros {
		out[name] = Fillings(tree.Path{{Name: name}}, zero)[0]
	}
	return out
}

// OfIdentity reports whether any of the edits changes the identity of an object: its name, namespace or owners. A copy
// or a restored backup has another identity.
func OfIdentity(list []Edit) bool {
	return slices.ContainsFunc(list, func(e Edit) bool {
		return len(e.Path) == 2 && e.Path[0].Name == "metadata" && !e.Path[1].Element &&
			slices.Contains([]string{"name", "generateName", "namespace", "ownerReferences"}, e.Path[1].Name)
	})
}

// Copies returns edits that give an object another identity, as a copied manifest or a restored backup has: a new name,
// the name that the API server generates, or another namespace. With a name, the object also loses its generateName and
// its owners. Everything else stays. namespace is the other namespace, or "" without one.
func Copies(doc any, namespace string) (list [][]Edit) {
	name := func(text string) []Edit {
		edits := []Edit{{What: Put, Path: Metadata.Member("name"), Value: text}}
		for _, member := range []string{"generateName", "ownerReferences"} {
			if tree.Has(doc, Metadata.Member(member)) {
				edits = append(edits, Edit{What: Remove, Path: Metadata.Member(member)})
			}
		}
		return edits
	}
	list = append(list, name("copied"))
	if value, _ := tree.Get(doc, Metadata.Member("generateName")); value != nil && !tree.Has(doc, Metadata.Member("name")) {
		prefix, _ := value.(string)
		list = append(list, name(strings.TrimRight(prefix[:min(len(prefix), 50)], "-.")+"-x7k2p"))
	}
	if namespace != "" {
		list = append(list, []Edit{{What: Put, Path: Metadata.Member("namespace"), Value: namespace}})
	}
	return list
}

// Namesake returns doc with the name, generateName and namespace of the document of, and with the given uid. If uid is
// empty, doc keeps its own.
func Namesake(doc, of any, uid string) any {
	for _, member := range []string{"name", "generateName", "namespace"} {
		p := Metadata.Member(member)
		value, ok := tree.Get(of, p)
		next, changed := tree.Remove(doc, p)
		if ok {
			next, changed = tree.Put(doc, p, value)
		}
		if changed {
			doc = next
		}
	}
	if uid == "" {
		return doc
	}
	if next, ok := tree.Put(doc, Metadata.Member("uid"), uid); ok {
		doc = next
	}
	return doc
}

// Replacement returns edits that give an object other content but keep its name: they add a label, and change the image
// and the variables of each container.
func Replacement(doc any) []Edit {
	edits := []Edit{{What: Put, Path: Metadata.Member("labels").Member("rival.example.com/other"), Value: "yes"}}
	for _, p := range ContainerLists(doc) {
		value, _ := tree.Get(doc, p)
		list, _ := value.([]any)
		for _, c := range list {
			at := p.Element(tree.Identity(p, c), 0)
			edits = append(edits, Edit{What: Put, Path: at.Member("image"), Value: "registry.example.com/other:2"},
				Edit{What: Insert, Path: at.Member("env"), Value: Fields{"name": rivalVariable, "value": "here"}})
		}
	}
	return edits
}

// Notes returns edits that add only the annotations and labels of a webhook's changes.
func Notes(changes []tree.Change) (list []Edit) {
	for _, c := range Single(changes) {
		if c.Kind == tree.Added && IsNote(c.Path) {
			list = append(list, Edit{What: Put, Path: c.Path, Value: c.New})
		}
	}
	return list
}
