// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"encoding/json"
	"maps"
	"slices"
)

// An object is a decoded JSON object.
type object = map[string]any

// at returns the value at a path of keys and indexes, or nil if nothing is there.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func text(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

func list(v any, path ...any) []any {
	l, _ := at(v, path...).([]any)
	return l
}

func dict(v any, path ...any) object {
	m, _ := at(v, path...).(object)
	return m
}

// put sets the value at a path of keys and indexes. It creates missing objects on the way.
func put(v any, value any, path ...any) {
	for i, step := range path {
		last := i == len(path)-1
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			if last {
				m[step] = value
			} else if m[step] == nil {
				m[step] = object{}
			}
			v = m[step]
		case int:
			l, _ := v.([]any)
			if last {
				l[step] = value
			}
			v = l[step]
		}
	}
}

// push appends an element to the list at a path.
func push(v any, element any, path ...any) {
	put(v, append(slices.Clone(list(v, path...)), element), path...)
}

// named returns the index of the element with a name, or -1.
func named(l []any, name string) int {
	return slices.IndexFunc(l, func(e any) bool { return text(e, "name") == name })
}

// names returns the names of the elements.
func names(l []any) []string {
	var out []string
	for _, e := range l {
		out = append(out, text(e, "name"))
	}
	return out
}

// clone copies a JSON value.
func clone(o object) object {
	data, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	var out object
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// annotate returns operations that set an annotation of an object, not of its Pod template.
func annotate(obj object, key, value string) []operation {
	switch have := dict(obj, "metadata", "annotations"); {
	case have == nil:
		return []operation{add("/metadata/annotations", object{key: value})}
	case have[key] == value:
		return nil
	default:
		return []operation{add(pointer("metadata", "annotations", key), value)}
	}
}

// isDeleting reports whether an object is being deleted. A webhook must not deny its updates, because these remove its
// finalizers.
func isDeleting(obj object) bool { return text(obj, "metadata", "deletionTimestamp") != "" }

// isImmutable reports whether the data of a ConfigMap must not change.
func isImmutable(cm object) bool { return cm["immutable"] == true }

// annotation returns the value of an annotation, or "" if the object lacks it.
func annotation(obj object, key string) string { return text(obj, "metadata", "annotations", key) }
