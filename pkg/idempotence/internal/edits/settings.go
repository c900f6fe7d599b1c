// SPDX-License-Identifier: Apache-2.0

package edits

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

// KnownSettings returns the content of settings.yaml: lists of fields that users may set, for kinds and for parts of a
// Pod.
var KnownSettings = sync.OnceValue(func() map[string]any {
	encoded, err := yaml.YAMLToJSONStrict(settingsFile)
	if err == nil {
		var doc any
		if doc, err = tree.Decode(encoded); err == nil {
			return doc.(Fields)
		}
	}
	panic(err) // a test decodes the file, so this cannot happen
})

// eachSetting calls f with each known setting for a document and for the Pods in it. members are the fields of the
// setting, and at are the paths where users may set them.
func eachSetting(doc any, f func(members Fields, at ...tree.Path)) {
	known := func(name string) []any {
		list, _ := KnownSettings()[name].([]any)
		return list
	}
	top, _ := doc.(Fields)
	kind, _ := top["kind"].(string)
	for _, s := range slices.Concat(known(kind), known("object")) {
		members := s.(Fields)
		for _, name := range []string{"metadata", "spec"} {
			if inner, ok := members[name].(Fields); ok && len(members) == 1 {
				f(inner, tree.Path{{Name: name}})
				members = nil
			}
		}
		if members != nil {
			f(members, nil)
		}
	}
	for _, containers := range ContainerLists(doc) {
		for _, s := range known("pod") {
			f(s.(Fields), containers[:len(containers)-1])
		}
		var each []tree.Path
		value, _ := tree.Get(doc, containers)
		for _, c := range value.([]any) {
			each = append(each, containers.Element(tree.Identity(containers, c), 0))
		}
		for _, s := range known("container") {
			f(s.(Fields), each...)
		}
	}
}

// NewSettings returns, for each known setting that a user could add to doc, the edits that add the setting. The edits
// replace no existing value.
func NewSettings(doc any) (list [][]Edit) {
	eachSetting(doc, func(members Fields, at ...tree.Path) {
		var edits []Edit
		for _, p := range at {
			edits = append(edits, setting(doc, p, members)...)
		}
		if len(edits) > 0 {
			list = append(list, edits)
		}
	})
	for _, containers := range ContainerLists(doc) {
		for _, c := range KnownSettings()["containers"].([]any) {
			list = append(list, []Edit{{What: Insert, Path: containers, Value: c}})
		}
	}
	return list
}

// setting returns edits that add the missing members of a setting to the object at a path.
func setting(doc any, at tree.Path, members Fields) (edits []Edit) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		path := at.Member(name)
		there, ok := tree.Get(doc, path)
		inner, isObject := members[name].(Fields)
		switch _, also := there.(Fields); {
		case !ok:
			edits = append(edits, Edit{What: Put, Path: path, Value: members[name]})
		case isObject && also:
			edits = append(edits, setting(doc, path, inner)...)
		}
	}
	return edits
}

// OtherSettings returns, for each known setting that would replace an existing value of doc, the edits that apply the
// setting.
func OtherSettings(doc any) (list [][]Edit) {
	eachSetting(doc, func(members Fields, at ...tree.Path) {
		var edits []Edit
		replaces := false
		for _, p := range at {
			for _, name := range slices.Sorted(maps.Keys(members)) {
				path := p.Member(name)
				there, ok := tree.Get(doc, path)
				if path[0].Name == "metadata" || ok && tree.Equal(there, members[name]) {
					continue
				}
				replaces = replaces || ok
				edits = append(edits, Edit{What: Put, Path: path, Value: members[name]})
			}
		}
		if replaces {
			list = append(list, edits)
		}
	})
	return list
}
