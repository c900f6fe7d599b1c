// SPDX-License-Identifier: Apache-2.0

// Package edits generates the changes that other parties make to an object between two calls of a webhook, and
// applies them.
package edits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Additions returns edits that add labels, containers, volumes, tolerations, environment variables and other values to
// doc, as other parties do. The edits are in random order. If custom is set, doc is a custom resource, and further
// edits add renamed copies of its list elements.
func Additions(random *rand.Rand, doc any, custom bool) (edits []Edit) {
	for _, meta := range allMetadata(doc) {
		edits = append(edits,
			Edit{What: Put, Path: meta.Member("annotations").Member("rival.example.com/added"), Value: "yes"},
			Edit{What: Put, Path: meta.Member("labels").Member("rival.example.com/added"), Value: "yes"})
	}
	for _, p := range ContainerLists(doc) {
		spec := p[:len(p)-1]
		edits = append(edits,
			Edit{What: Insert, Path: p, Value: rivalContainer()},
			Edit{What: Insert, Path: p, Value: fullContainer()},
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
	if custom {
		edits = append(edits, customAdditions(doc)...)
	}
	random.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	return append(edits, Edit{What: Insert, Path: Finalizers, Value: "rival.example.com/added"})
}

// LegalDuplicates returns edits that add nearly equal elements. The API server accepts such elements, for example two
// ports with the same number and different protocols.
func LegalDuplicates(doc any) (edits []Edit) {
	if fields, _ := doc.(map[string]any); fields["kind"] == "Service" && fields["apiVersion"] == "v1" {
		port := func(protocol string) any {
			return map[string]any{"name": "rival-" + strings.ToLower(protocol), "port": int64(5353), "protocol": protocol}
		}
		edits = append(edits, Edit{What: Put, Path: tree.Path{{Name: "spec"}, {Name: "ports"}}, Value: []any{port("TCP"), port("UDP")}})
	}
	for _, p := range ContainerLists(doc) {
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

// LikeRemoved returns two edits for each named element that a webhook removes, according to changes. They add the
// element again, once with the suffix TwinSuffix and once with an unrelated name.
func LikeRemoved(changes []tree.Change) (edits []Edit) {
	for _, c := range changes {
		element, ok := tree.Clone(c.Old).(map[string]any)
		if c.Kind != tree.Removed || !ok || !c.Path[len(c.Path)-1].Element {
			continue
		}
		name, ok := element["name"].(string)
		if !ok {
			continue
		}
		other := tree.Clone(element).(map[string]any)
		element["name"], other["name"] = name+TwinSuffix, "rival-data"
		list := c.Path[:len(c.Path)-1]
		edits = append(edits, Edit{What: Insert, Path: list, Value: element}, Edit{What: Insert, Path: list, Value: other})
	}
	return edits
}

// customAdditions returns edits that add an element to each list of a custom resource: a copy of the first element with
// another name.
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

// mostMade is the maximum number of edits that MadeAdditions returns.
const mostMade = 8

// MadeAdditions returns edits that add values to the lists and maps of an object. made generates the values from the Go
// type or the CustomResourceDefinition.
func MadeAdditions(random *rand.Rand, made generate.Generator, doc any) (edits []Edit) {
	object, ok := doc.(map[string]any)
	if !ok || made.Schema == nil {
		return nil
	}
	places := made.Places(object)
	random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, at := range places {
		if len(edits) == mostMade {
			break
		}
		if at[0].Name == "metadata" {
			continue
		}
		switch a, ok := made.Addition(random, object, at); {
		case !ok:
		case a.Name != "":
			edits = append(edits, Edit{What: Put, Path: a.At.Member(a.Name), Value: a.Value})
		default:
			edits = append(edits, Edit{What: Insert, Path: a.At, Value: a.Value})
		}
	}
	return edits
}

// fullContainer returns a container with most of the fields that webhooks read.
func fullContainer() map[string]any {
	return map[string]any{
		"name": "rival-app", "image": "registry.example.com/rival-app:1", "command": []any{"/rival"}, "args": []any{"--port=18888"},
		"env":             []any{map[string]any{"name": "RIVAL_MODE", "value": "fast"}},
		"envFrom":         []any{map[string]any{"configMapRef": map[string]any{"name": "rival"}}},
		"ports":           []any{map[string]any{"name": "rival-http", "containerPort": int64(18888)}},
		"readinessProbe":  map[string]any{"httpGet": map[string]any{"path": "/ready", "port": int64(18888)}},
		"livenessProbe":   map[string]any{"tcpSocket": map[string]any{"port": int64(18888)}},
		"lifecycle":       map[string]any{"preStop": map[string]any{"exec": map[string]any{"command": []any{"/rival", "stop"}}}},
		"resources":       map[string]any{"limits": map[string]any{"cpu": "2", "memory": "256Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "128Mi"}},
		"imagePullPolicy": "Always",
	}
}

// largeInteger is an integer that a float64 cannot represent.
const largeInteger = 1<<53 + 1

// UnknownFields returns edits that add fields which no Go type has: to the object, its spec and its list elements.
func UnknownFields(random *rand.Rand, doc any) (edits []Edit) {
	put := func(at tree.Path) {
		n := len(edits)
		edits = append(edits, Edit{What: Put, Path: at.Member("futureField"), Value: map[string]any{"mode": fmt.Sprintf("m%d", n), "count": int64(largeInteger)}})
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
				continue // an added field would change the identity of the element
			}
			seen[key]++
			if random.IntN(3) > 0 || len(edits) < 4 {
				put(p.Element(key, 0))
			}
		}
	})
	return edits
}

// TwinSuffix is the suffix of the names of the copies that LikeRemoved and CopiedElements add.
const TwinSuffix = "-twin"
