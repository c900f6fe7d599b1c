// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
)

// Put returns the document with a value at a path. It creates missing parents and appends a missing element to its
// list. It returns false if the path leads through a value that is neither object nor list, or into a missing element.
func Put(doc any, p Path, value any) (any, bool) { return edit(doc, nil, p, &value) }

// Remove returns the document without the value at a path, or false if there is no value.
func Remove(doc any, p Path) (any, bool) { return edit(doc, nil, p, nil) }

// edit copies the values on the path and shares all others.
func edit(doc any, at, rest Path, value *any) (any, bool) {
	if len(rest) == 0 {
		if value == nil {
			return nil, false
		}
		return Clone(*value), true
	}
	if rest[0].Element {
		return editList(doc, at, rest, value)
	}
	object, ok := doc.(map[string]any)
	if !ok && doc != nil {
		return nil, false
	}
	name := rest[0].Name
	inner, has := object[name]
	if value == nil && !has {
		return nil, false
	}
	out := make(map[string]any, len(object)+1)
	for k, v := range object {
		out[k] = v
	}
	if value == nil && len(rest) == 1 {
		delete(out, name)
		return out, true
	}
	if inner, ok = edit(inner, append(slices.Clip(at), rest[0]), rest[1:], value); ok {
		out[name] = inner
	}
	return out, ok
}

func editList(doc any, at, rest Path, value *any) (any, bool) {
	list, ok := doc.([]any)
	if !ok && doc != nil {
		return nil, false
	}
	i := indexOf(list, rest[0], at)
	switch {
	case i < 0 && (value == nil || len(rest) > 1):
		return nil, false
	case i < 0:
		return append(slices.Clone(list), Clone(*value)), true
	case value == nil && len(rest) == 1:
		return slices.Delete(slices.Clone(list), i, i+1), true
	}
	inner, ok := edit(list[i], append(slices.Clip(at), rest[0]), rest[1:], value)
	if !ok {
		return nil, false
	}
	out := slices.Clone(list)
	out[i] = inner
	return out, true
}

// Insert returns the document with an element inserted at an index of the list at a path, or at its end if the index is
// negative. It creates a missing list.
func Insert(doc any, list Path, index int, element any) (any, bool) {
	value, _ := Get(doc, list)
	elements, ok := value.([]any)
	if !ok && value != nil {
		return nil, false
	}
	if index < 0 || index > len(elements) {
		index = len(elements)
	}
	return Put(doc, list, slices.Insert(slices.Clone(elements), index, Clone(element)))
}
