// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	_ "embed"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

//go:embed settings.yaml
var settingsFile []byte

// knownSettings are the lists of settings.yaml.
var knownSettings = sync.OnceValue(func() map[string]any {
	encoded, err := yaml.YAMLToJSONStrict(settingsFile)
	if err == nil {
		var doc any
		if doc, err = tree.Decode(encoded); err == nil {
			return doc.(fields)
		}
	}
	panic(err) // a test reads them
})

// settings are what users may set in a document and in the Pods in it, each one as the edits that make it.
func settings(doc any) (list [][]Edit) {
	add := func(edits []Edit) {
		if len(edits) > 0 {
			list = append(list, edits)
		}
	}
	known := func(name string) []any {
		list, _ := knownSettings()[name].([]any)
		return list
	}
	top, _ := doc.(fields)
	kind, _ := top["kind"].(string)
	for _, s := range slices.Concat(known(kind), known("object")) {
		add(setting(doc, nil, s.(fields)))
	}
	for _, containers := range containerLists(doc) {
		for _, s := range known("pod") {
			add(setting(doc, containers[:len(containers)-1], s.(fields)))
		}
		value, _ := tree.Get(doc, containers)
		for _, s := range known("container") {
			var edits []Edit
			for _, c := range value.([]any) {
				edits = append(edits, setting(doc, containers.Element(tree.Identity(containers, c), 0), s.(fields))...)
			}
			add(edits)
		}
		for _, c := range known("containers") {
			add([]Edit{{What: Insert, Path: containers, Value: c}})
		}
	}
	return list
}

// setting puts members at a path where there are none.
func setting(doc any, at tree.Path, members fields) (edits []Edit) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		path := at.Member(name)
		there, ok := tree.Get(doc, path)
		inner, isObject := members[name].(fields)
		switch _, also := there.(fields); {
		case !ok:
			edits = append(edits, Edit{What: Put, Path: path, Value: members[name]})
		case isObject && also:
			edits = append(edits, setting(doc, path, inner)...)
		}
	}
	return edits
}

// mostSet are the objects that get each setting.
const mostSet = 3

// trySettings has the laws look at objects in which the user, or later another party, has set
// something.
func (r *run) trySettings(x, result *object, try func(Law, func(*Case))) {
	for _, edits := range settings(x.doc) {
		if set, ok := r.edited(x, edits); ok {
			for _, law := range []Law{L10, L2, L1} {
				try(law, func(c *Case) { c.Object = set.doc })
			}
			if r.opts.uses(olderObjects) {
				try(L6, func(c *Case) { c.Object, c.Way = set.doc, olderObject })
			}
		}
	}
	for _, edits := range settings(result.doc) {
		try(L4a, func(c *Case) { c.Edits = edits })
	}
}
