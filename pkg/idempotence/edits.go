// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostParts bounds how many parts of one result are taken apart.
const mostParts = 16

// partialResults are edits that put part of a result into the object, or what looks like a part.
func (r *run) partialResults(x any, changes []tree.Change) [][]Edit {
	var all []Edit
	for _, c := range changes {
		if c.Kind == tree.Added && len(all) < mostParts && r.opts.uses(partsOfResults) {
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
	for _, c := range single(changes) {
		if len(out) < mostPartial && r.opts.uses(alikeParts) {
			out = append(out, lookAlikes(x, c)...)
		}
	}
	return out
}

// mostPartial bounds how many objects with parts there are.
const mostPartial = 64

// single takes apart the lists and maps that are new as a whole.
func single(changes []tree.Change) (out []tree.Change) {
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

// putPart puts a part where it is in the result. An element goes to the end of its list.
func putPart(p tree.Path, value any) Edit {
	if last := p[len(p)-1]; last.Element {
		return Edit{What: Insert, Path: p[:len(p)-1], Value: value}
	}
	return Edit{What: Put, Path: p, Value: value}
}

// lookAlikes are objects of the user's that have the identity of a part, but not its content.
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
		return [][]Edit{{insert(list, user)}, {insert(list[:len(list)-1].Member(other), user)}}
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

// podSpec is the part of a path up to the Pod spec, the object that has containers.
func podSpec(p tree.Path) tree.Path {
	for i, s := range p {
		if strings.HasSuffix(strings.ToLower(s.Name), "containers") {
			return p[:i]
		}
	}
	return p[:max(len(p)-1, 0)]
}

// mountEdits mount a volume of the user's in each container.
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

// meddling are edits of others to a result: to the webhook's parts and to the user's.
func meddling(random *rand.Rand, result any, changes []tree.Change) (out [][]Edit) {
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
	var foreign [][]Edit
	tree.Leaves(result, func(p tree.Path, value any) {
		if len(p) > 1 && !isIdentity(p) {
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

// isIdentity reports whether a value is what its element is known by, or what the object is.
func isIdentity(p tree.Path) bool {
	if p[0].Name == "apiVersion" || p[0].Name == "kind" || p[0].Name == "status" {
		return true
	}
	if p[0].Name == "metadata" && p.Last() != "metadata" && (len(p) == 2 || p[1].Name != "labels" && p[1].Name != "annotations") {
		return true
	}
	return len(p) > 1 && p[len(p)-2].Element && !p[len(p)-1].Element && strings.Contains(p[len(p)-2].Key, p[len(p)-1].Name+"=")
}

// otherValues are edits that give the leaves of a part other values.
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

// additions are edits with which others add something of their own, and nothing else.
func (r *run) additions(random *rand.Rand, doc any) (edits []Edit) {
	edits = append(edits,
		Edit{What: Put, Path: annotations.Member("rival.example.com/added"), Value: "yes"},
		Edit{What: Put, Path: metadata.Member("labels").Member("rival.example.com/added"), Value: "yes"})
	for _, p := range containerLists(doc) {
		spec := p[:len(p)-1]
		edits = append(edits,
			Edit{What: Insert, Path: p, Value: rivalContainer()},
			Edit{What: Insert, Path: spec.Member("initContainers"), Value: rivalContainer()},
			Edit{What: Insert, Path: spec.Member("volumes"), Value: map[string]any{"name": "rival-data", "emptyDir": map[string]any{}}},
			Edit{What: Insert, Path: spec.Member("tolerations"), Value: map[string]any{"key": "rival.example.com", "operator": "Exists"}},
			Edit{What: Insert, Path: spec.Member("imagePullSecrets"), Value: map[string]any{"name": "rival"}},
		)
		value, _ := tree.Get(doc, p)
		list, _ := value.([]any)
		for _, c := range list[:min(2, len(list))] {
			at := p.Element(tree.Identity(p, c), 0)
			edits = append(edits,
				Edit{What: Insert, Path: at.Member("env"), Value: map[string]any{"name": "RIVAL", "value": "here"}},
				Edit{What: Insert, Path: at.Member("args"), Value: "--rival"})
		}
	}
	if r.kind.goType == nil {
		edits = append(edits, customAdditions(doc)...)
	}
	random.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	return edits
}

// twins are legal duplicates: elements that have most in common, but are not the same.
func (r *run) twins(doc any) (edits []Edit) {
	for _, p := range containerLists(doc) {
		spec := p[:len(p)-1]
		for _, effect := range []string{"NoSchedule", "NoExecute"} {
			edits = append(edits, Edit{What: Insert, Path: spec.Member("tolerations"),
				Value: map[string]any{"key": "rival.example.com", "operator": "Exists", "effect": effect}})
		}
		value, _ := tree.Get(doc, p)
		list, _ := value.([]any)
		for _, c := range list[:min(1, len(list))] {
			at := p.Element(tree.Identity(p, c), 0)
			for _, protocol := range []string{"TCP", "UDP"} {
				edits = append(edits, Edit{What: Insert, Path: at.Member("ports"), Value: map[string]any{"containerPort": int64(5353), "protocol": protocol}})
			}
			for _, prefix := range []string{"", "RIVAL_"} {
				source := map[string]any{"configMapRef": map[string]any{"name": "rival"}}
				if prefix != "" {
					source["prefix"] = prefix
				}
				edits = append(edits, Edit{What: Insert, Path: at.Member("envFrom"), Value: source})
			}
			env, _ := tree.Get(doc, at.Member("env"))
			variables, _ := env.([]any)
			edits = append(edits, Edit{What: Put, Path: at.Member("env"), Value: append(slices.Clone(variables),
				map[string]any{"name": "RIVAL", "value": "first"}, map[string]any{"name": "RIVAL", "value": "second"})})
		}
	}
	return edits
}

// twinsOf are elements like those that the webhook removes, and one behind them that is not.
func twinsOf(changes []tree.Change) (edits []Edit) {
	for _, c := range changes {
		element, ok := tree.Clone(c.Old).(map[string]any)
		if c.Kind != tree.Removed || !ok || !c.Path[len(c.Path)-1].Element {
			continue
		}
		name, ok := element["name"].(string)
		if !ok {
			continue
		}
		stranger := tree.Clone(element).(map[string]any)
		element["name"], stranger["name"] = name+twin, "rival-data"
		list := c.Path[:len(c.Path)-1]
		edits = append(edits, Edit{What: Insert, Path: list, Value: element}, Edit{What: Insert, Path: list, Value: stranger})
	}
	return edits
}

// legal leaves out the edits after which the API server would refuse the object.
func (r *run) legal(x *object, edits []Edit) (legal []Edit) {
	for _, e := range edits {
		if _, ok := r.edited(x, append(slices.Clone(legal), e)); ok {
			legal = append(legal, e)
		}
	}
	return legal
}

// customAdditions add to the lists and maps of a custom resource what looks like what is there.
func customAdditions(doc any) (edits []Edit) {
	tree.Lists(doc, func(p tree.Path, list []any) {
		if len(p) == 0 || p[0].Name == "metadata" || len(list) == 0 {
			return
		}
		switch element := tree.Clone(list[0]).(type) {
		case map[string]any:
			if _, ok := element["name"].(string); ok {
				element["name"] = rivalName
				edits = append(edits, Edit{What: Insert, Path: slices.Clone(p), Value: element})
			}
		case string:
			edits = append(edits, Edit{What: Insert, Path: slices.Clone(p), Value: rivalName})
		}
	})
	return edits
}

// unknownFields are fields that no Go type of today has: in the spec and in elements of lists.
func (r *run) unknownFields(random *rand.Rand, doc any) (edits []Edit) {
	put := func(at tree.Path) {
		n := len(edits)
		edits = append(edits, Edit{What: Put, Path: at.Member("futureField"), Value: map[string]any{"mode": fmt.Sprintf("m%d", n)}})
	}
	if fields, ok := doc.(map[string]any); ok {
		if _, ok := fields["spec"].(map[string]any); ok {
			put(tree.Path{{Name: "spec"}})
		}
	}
	put(nil)
	tree.Lists(doc, func(p tree.Path, list []any) {
		if p[0].Name == "metadata" {
			return
		}
		seen := map[string]int{}
		for _, element := range list {
			if _, ok := element.(map[string]any); !ok {
				continue
			}
			key := tree.Identity(p, element)
			if strings.HasPrefix(key, "{") || seen[key] > 0 {
				continue // an element that would be another one with the field in it
			}
			seen[key]++
			if random.IntN(3) > 0 || len(edits) < 4 {
				put(p.Element(key, 0))
			}
		}
	})
	return edits
}
