// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"maps"
	"slices"
	"strconv"
)

// An operation is one JSON Patch operation.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// apply applies the operation and returns the places that it touched. The operation must be valid, which the
// caller has checked with evanphx/json-patch.
func (op *operation) apply(tree *any) []place {
	put := element{nameOf(op.Value, 0), named(op.Value)}
	if op.Op == "move" {
		put = take(*tree, tokens(op.From))
		(&operation{Op: "remove", Path: op.From}).apply(tree)
	}
	var touched []place
	*tree, touched = edited(*tree, tokens(op.Path), "", op.Op, put)
	return touched
}

// edited applies an operation to a path in v, and returns the new v and the touched places. p is the place of v.
func edited(v any, path []string, p place, op string, put element) (any, []place) {
	if len(path) == 0 {
		return put.value, differing(flat(v, p), flat(put.value, p))
	}
	switch c := v.(type) {
	case map[string]any:
		return editedObject(c, path, p, op, put)
	case []element:
		return editedList(c, path, p, op, put)
	default:
		return v, nil
	}
}

func editedObject(object map[string]any, path []string, p place, op string, put element) (any, []place) {
	old, had := object[path[0]]
	if len(path) > 1 {
		value, touched := edited(old, path[1:], join(p, path[0]), op, put)
		object[path[0]] = value
		return object, touched
	}
	before, after := map[place]string{}, map[place]string{}
	if had {
		before = flat(old, join(p, path[0]))
	}
	if op == "remove" {
		delete(object, path[0])
	} else {
		object[path[0]] = put.value
		after = flat(put.value, join(p, path[0]))
	}
	return object, differing(before, after)
}

func editedList(list []element, path []string, p place, op string, put element) (any, []place) {
	i, err := strconv.Atoi(path[0])
	if err != nil { // the token is "-"
		i = len(list)
	}
	if len(path) == 1 && op != "remove" && op != "replace" {
		return slices.Insert(list, i, put), places(put, p)
	}
	e := list[i]
	switch {
	case len(path) > 1:
		value, touched := edited(e.value, path[1:], join(p, e.name), op, put)
		list[i].value = value
		return list, touched
	case op == "remove":
		return slices.Delete(list, i, i+1), places(e, p)
	default:
		list[i].value = put.value
		return list, differing(flat(e.value, join(p, e.name)), flat(put.value, join(p, e.name)))
	}
}

// places returns the places of all values in an element of a list.
func places(e element, list place) []place {
	return slices.Collect(maps.Keys(flat(e.value, join(list, e.name))))
}

// take returns the element at a path, or a zero element.
func take(v any, path []string) element {
	e := element{value: v}
	for _, token := range path {
		switch c := e.value.(type) {
		case map[string]any:
			e = element{token, c[token]}
		case []element:
			i, err := strconv.Atoi(token)
			if err != nil {
				return element{}
			}
			e = c[i]
		}
	}
	return e
}
