// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostParts is the maximum number of a webhook's changes from which PartialResults and ByOthers derive edits.
const mostParts = 16

// PartialResults returns edits that add parts of a webhook's result to x, as if x had them before the first call.
// changes are the changes from x to the result. If parts is set, the edits add the parts themselves, one or several at
// a time. If alike is set, further edits add elements that resemble a part.
func PartialResults(x any, changes []tree.Change, parts, alike bool) [][]Edit {
	var all []Edit
	for _, c := range changes {
		if c.Kind == tree.Added && len(all) < mostParts && parts {
			all = append(all, putPart(c.Path, c.New))
		}
	}
	var out [][]Edit
	for i, e := range all {
		out = append(out, []Edit{e})
		if len(all) > 2 {
			out = append(out, slices.Delete(slices.Clone(all), i, i+1))
		}
	}
	if len(all) > 1 {
		out = append(out, all)
	}
	for _, c := range Single(changes) {
		if len(out) < mostPartial && alike {
			out = append(out, lookAlikes(x, c)...)
		}
	}
	return out
}

// OnlyKeys returns an edit for each added list element that is a text or has only one field, such as a pull secret. A
// webhook that finds such an element cannot know whether it has added the element itself.
func OnlyKeys(changes []tree.Change) (list []Edit) {
	for _, c := range Single(changes) {
		fields, isObject := c.New.(map[string]any)
		_, isText := c.New.(string)
		if c.Kind == tree.Added && c.Path[len(c.Path)-1].Element && !slices.Contains(owned, c.Path.Last()) && (isText || isObject && len(fields) == 1) {
			list = append(list, putPart(c.Path, c.New))
		}
	}
	return list
}

// owned are lists whose elements have the domain of the program that sets them. No user sets them for another purpose.
var owned = []string{"finalizers", "readinessGates", "schedulingGates"}

// mostPartial is the number of edits at which PartialResults stops adding elements that resemble a part.
const mostPartial = 64

// Single splits additions of whole lists and maps into additions of single values.
func Single(changes []tree.Change) (out []tree.Change) {
	for _, c := range changes {
		list, isList := c.New.([]any)
		if c.Kind == tree.Added && isList {
			for _, element := range list {
				out = append(out, tree.Change{Kind: tree.Added, Path: c.Path.Element(tree.Identity(c.Path, element), 0), New: element})
			}
			continue
		}
		members, isMap := c.New.(map[string]any)
		if last := c.Path[len(c.Path)-1]; c.Kind == tree.Added && isMap && !last.Element {
			for _, name := range slices.Sorted(maps.Keys(members)) {
				out = append(out, tree.Change{Kind: tree.Added, Path: c.Path.Member(name), New: members[name]})
			}
			continue
		}
		out = append(out, c)
	}
	return out
}

// putPart returns the edit that adds a part at its path. If the part is a list element, the edit adds it at the end of
// the list.
func putPart(p tree.Path, value any) Edit {
	if last := p[len(p)-1]; last.Element {
		return Edit{What: Insert, Path: p[:len(p)-1], Value: value}
	}
	return Edit{What: Put, Path: p, Value: value}
}

// lookAlikes returns edits that add elements as if the user had set them. They have the name, path or address of a
// part, but other content.
func lookAlikes(x any, c tree.Change) [][]Edit {
	if c.Kind != tree.Added {
		return nil
	}
	last := c.Path[len(c.Path)-1]
	if text, ok := c.New.(string); ok && !last.Element {
		return [][]Edit{{{What: Put, Path: c.Path, Value: text + "-of-the-user"}}, {{What: Put, Path: c.Path, Value: ""}}}
	}
	part, ok := c.New.(map[string]any)
	if !ok || !last.Element {
		return nil
	}
	list := c.Path[:len(c.Path)-1]
	insert := func(p tree.Path, value map[string]any) Edit { return Edit{What: Insert, Path: p, Value: value} }
	switch name := part["name"]; c.Path.Last() {
	case "containers", "initContainers":
		user := map[string]any{"name": name, "image": "registry.example.com/user:1", "securityContext": map[string]any{"runAsUser": int64(1000)}}
		other := "initContainers"
		if c.Path.Last() == other {
			other = "containers"
		}
		native := maps.Clone(user)
		native["restartPolicy"] = "Always"
		return [][]Edit{{insert(list, user)}, {insert(list[:len(list)-1].Member(other), user)}, {insert(list[:len(list)-1].Member("initContainers"), native)}}
	case "volumes":
		var out [][]Edit
		for _, source := range []map[string]any{{"emptyDir": map[string]any{}}, {"configMap": map[string]any{"name": "of-the-user"}}} {
			volume := map[string]any{"name": name}
			for k, v := range source {
				if _, same := part[k]; same {
					v = map[string]any{"emptyDir": map[string]any{"medium": "Memory"}, "configMap": map[string]any{"name": "of-the-user"}}[k]
				}
				volume[k] = v
			}
			out = append(out, []Edit{insert(list, volume)}, append([]Edit{insert(list, volume)}, mountEdits(x, list, fmt.Sprint(name))...))
		}
		return out
	case "volumeMounts":
		volume := map[string]any{"name": "of-the-user", "emptyDir": map[string]any{}}
		mount := map[string]any{"name": "of-the-user", "mountPath": part["mountPath"]}
		return [][]Edit{{insert(podSpec(list).Member("volumes"), volume), insert(list, mount)}}
	case "env":
		return [][]Edit{{insert(list, map[string]any{"name": name, "value": "of-the-user"})}, {insert(list, map[string]any{"name": name})},
			{insert(list, map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}})}}
	case "ports":
		return nil
	case "hostAliases":
		return [][]Edit{{insert(list, map[string]any{"ip": part["ip"], "hostnames": []any{"of-the-user.example.com"}})}}
	}
	if name, ok := part["name"]; ok {
		return [][]Edit{{insert(list, map[string]any{"name": name})}}
	}
	return nil
}

// podSpec returns the path of the Pod spec on the way to p. The Pod spec is the object that has containers.
func podSpec(p tree.Path) tree.Path {
	for i, s := range p {
		if strings.HasSuffix(strings.ToLower(s.Name), "containers") {
			return p[:i]
		}
	}
	return p[:max(len(p)-1, 0)]
}

// mountEdits returns edits that mount a volume of the user in each container.
func mountEdits(x any, volumes tree.Path, name string) (edits []Edit) {
	containers := volumes[:len(volumes)-1].Member("containers")
	value, _ := tree.Get(x, containers)
	list, _ := value.([]any)
	for _, c := range list {
		at := containers.Element(tree.Identity(containers, c), 0).Member("volumeMounts")
		edits = append(edits, Edit{What: Insert, Path: at, Value: map[string]any{"name": name, "mountPath": "/of-the-user"}})
	}
	return edits
}

// mostImages is the number of container images for which ByOthers always returns edits.
const mostImages = 2

// ByOthers returns edits that other parties may make to the result of a webhook. The parameter changes lists what the
// webhook changed. The edits change or remove those values, and some others at random.
func ByOthers(random *rand.Rand, result any, changes []tree.Change) (out [][]Edit) {
	for i, c := range changes {
		if i == mostParts {
			break
		}
		switch c.Kind {
		case tree.Added:
			out = append(out, []Edit{{What: Remove, Path: c.Path}})
			out = append(out, otherValues(c.Path, c.New)...)
			if last := c.Path[len(c.Path)-1]; last.Element {
				out = append(out, []Edit{{What: Reverse, Path: c.Path[:len(c.Path)-1]}})
			}
		case tree.Replaced:
			out = append(out, []Edit{{What: Put, Path: c.Path, Value: c.Old}})
			out = append(out, otherValues(c.Path, c.New)...)
		case tree.Moved:
			out = append(out, []Edit{{What: Reverse, Path: c.Path}})
		}
	}
	out = append(out, removals(changes)...)
	var foreign [][]Edit
	images := 0
	tree.Leaves(result, func(p tree.Path, value any) {
		if p.Last() == "image" && images < mostImages {
			images++ // other webhooks change images most often
			out = append(out, otherValues(slices.Clone(p), value)...)
		} else if len(p) > 1 && !isIdentity(p) {
			foreign = append(foreign, otherValues(slices.Clone(p), value)...)
			foreign = append(foreign, []Edit{{What: Remove, Path: slices.Clone(p)}})
		}
	})
	tree.Lists(result, func(p tree.Path, list []any) {
		if len(list) > 1 {
			foreign = append(foreign, []Edit{{What: Reverse, Path: slices.Clone(p)}})
		}
		for _, element := range list {
			foreign = append(foreign, []Edit{{What: Remove, Path: p.Element(tree.Identity(p, element), 0)}})
		}
	})
	random.Shuffle(len(foreign), func(i, j int) { foreign[i], foreign[j] = foreign[j], foreign[i] })
	return append(out, foreign[:min(len(foreign), 12)]...)
}

// removals returns edits that remove several additions of the webhook at once: either its annotations and labels, or
// everything else. Further edits rename its containers.
func removals(changes []tree.Change) (out [][]Edit) {
	var notes, parts []Edit
	for _, c := range changes {
		switch {
		case c.Kind != tree.Added:
			continue
		case IsNote(c.Path):
			notes = append(notes, Edit{What: Remove, Path: c.Path})
		default:
			parts = append(parts, Edit{What: Remove, Path: c.Path})
		}
		if element, ok := tree.Clone(c.New).(map[string]any); ok && c.Path[len(c.Path)-1].Element && strings.HasSuffix(strings.ToLower(c.Path.Last()), "containers") {
			element["name"] = "renamed"
			out = append(out, []Edit{{What: Remove, Path: c.Path}, {What: Insert, Path: c.Path[:len(c.Path)-1], Value: element}})
		}
	}
	for _, edits := range [][]Edit{notes, parts} {
		if len(edits) > 1 { // ByOthers itself removes single additions
			out = append(out, edits)
		}
	}
	return out
}

// isIdentity reports whether the value at a path identifies its element or its object, so that no edit may change it.
func isIdentity(p tree.Path) bool {
	if p[0].Name == "apiVersion" || p[0].Name == "kind" || p[0].Name == "status" {
		return true
	}
	if p[0].Name == "metadata" && p.Last() != "metadata" && (len(p) == 2 || p[1].Name != "labels" && p[1].Name != "annotations") {
		return true
	}
	return len(p) > 1 && p[len(p)-2].Element && !p[len(p)-1].Element && strings.Contains(p[len(p)-2].Key, p[len(p)-1].Name+"=")
}

// otherValues returns edits that each replace one value in a part by another value.
func otherValues(at tree.Path, part any) (out [][]Edit) {
	tree.Leaves(part, func(p tree.Path, value any) {
		path := append(slices.Clone(at), p...)
		if len(out) >= 8 || isIdentity(path) {
			return
		}
		if other := otherValue(path, value); other != nil {
			out = append(out, []Edit{{What: Put, Path: path, Value: other}})
		}
	})
	return out
}

func otherValue(p tree.Path, value any) any {
	switch v := value.(type) {
	case string:
		if p.Last() == "image" {
			return "registry.example.com/other:2"
		}
		return v + "x"
	case int64:
		return v + 1
	case bool:
		return !v
	}
	return nil
}
