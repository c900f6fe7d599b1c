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

// A place names a value by what its elements are called, not by where they stand, so that
// nothing changes its place when something is put before it: "/spec/containers/[app-0]/image".
type place = string

// An element of a list keeps the name it had at first, whatever a patch makes of it.
type element struct {
	name  string
	value any
}

// named turns the lists in a decoded document into lists of elements.
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

// nameOf is what an element is known by: its key, or itself.
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

func join(p place, name string) place {
	return p + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// flat lists every value below p with its place, the containing ones too.
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

// differing are the places whose value is not the same in both, or that only one has.
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

// spurious counts the operations that touch what lies outside of the changes from one
// document to the other.
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

// sameOrder tells whether the list at a path has its elements in the same order in both.
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
