// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A place is a path to a value, with list elements by name, such as "/spec/containers/[app-0]/image".
// Unlike an index, a name does not change when an element is inserted.
type place = string

// An element is one element of a list, with a name. A patch can change its value, but not its name.
type element struct {
	name  string
	value any
}

// named converts the lists in a decoded document to lists of elements.
func named(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = named(member)
		}
		return out
	case []any:
		out := make([]element, len(v))
		for i := range v {
			out[i] = element{nameOf(v[i], i), named(v[i])}
		}
		return out
	default:
		return v
	}
}

// nameOf returns the name of an element: its key, or its value, or else its index.
func nameOf(v any, i int) string {
	object, isObject := v.(map[string]any)
	if !isObject {
		return fmt.Sprintf("[%v]", v)
	}
	for _, key := range []string{"mountPath", "containerPort", "name", "key", "uid"} {
		if object[key] != nil {
			return fmt.Sprintf("[%v]", object[key])
		}
	}
	return "#" + strconv.Itoa(i)
}

// join appends an escaped name to a place.
func join(p place, name string) place {
	return p + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// flat returns the values in v by their places, where p is the place of v. Maps and lists have the value "".
func flat(v any, p place) map[place]string {
	all := map[place]string{p: ""}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			maps.Copy(all, flat(member, join(p, name)))
		}
	case []element:
		for _, e := range v {
			maps.Copy(all, flat(e.value, join(p, e.name)))
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		all[p] = string(text)
	}
	return all
}

// differing returns the places with different values, and those that only one of a and b has.
func differing(a, b map[place]string) []place {
	var places []place
	for p, value := range a {
		if other, has := b[p]; !has || other != value {
			places = append(places, p)
		}
	}
	for p := range b {
		if _, has := a[p]; !has {
			places = append(places, p)
		}
	}
	return places
}

// spurious counts the operations that change nothing, and those that touch a place that the edit does not change.
func spurious(before, wanted any, ops []operation) int {
	tree := named(before)
	changed := map[place]bool{}
	for _, p := range differing(flat(tree, ""), flat(named(wanted), "")) {
		changed[p] = true
	}
	justified := func(p place) bool {
		for ; p != ""; p = p[:strings.LastIndexByte(p, '/')] {
			if changed[p] {
				return true
			}
		}
		return false
	}
	n := 0
	for _, op := range ops {
		touched := op.apply(&tree)
		if op.Op == "move" {
			if sameOrder(named(before), named(wanted), op.Path) {
				n++
			}
		} else if len(touched) == 0 || slices.ContainsFunc(touched, func(p place) bool { return !justified(p) }) {
			n++
		}
	}
	return n
}

// sameOrder reports whether the list that contains path has the same order of elements in both documents.
func sameOrder(before, wanted any, path string) bool {
	parent := path[:strings.LastIndexByte(path, '/')]
	names := func(v any) []string {
		var all []string
		list, _ := take(v, tokens(parent)).value.([]element)
		for _, e := range list {
			all = append(all, e.name)
		}
		return all
	}
	return slices.Equal(names(before), names(wanted))
}

// tokens returns the unescaped parts of a JSON pointer.
func tokens(path string) []string {
	if path == "" {
		return nil
	}
	all := strings.Split(path[1:], "/")
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}
	return all
}
