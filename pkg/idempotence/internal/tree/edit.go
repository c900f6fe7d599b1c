// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"maps"
	"slices"
)

// Put returns the document with a value at a path. It creates missing parents and appends a missing element to its
// list. It returns false if the path leads through a value that is neither object nor list, or into a missing element.
// The result shares the value, and what is not on the path, with its sources, so none of them may be changed later.
func Put(doc any, p Path, value any) (any, bool) { return edit(doc, p, 0, &value) }

// Remove returns the document without the value at a path, or false if there is no value.
func Remove(doc any, p Path) (any, bool) { return edit(doc, p, 0, nil) }

// edit edits the value at p[:depth]. It copies the values on the path and shares all others.
func edit(doc any, p Path, depth int, value *any) (any, bool) {
	rest := p[depth:]
	if len(rest) == 0 {
		if value == nil {
			return nil, false
		}
		return *value, true
	}
	if rest[0].Element {
		return editList(doc, p, depth, value)
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
	out := maps.Clone(object)
	if out == nil {
		out = map[string]any{}
	}
	if value == nil && len(rest) == 1 {
		delete(out, name)
		return out, true
	}
	if inner, ok = edit(inner, p, depth+1, value); ok {
		out[name] = inner
	}
	return out, ok
}

func editList(doc any, p Path, depth int, value *any) (any, bool) {
	at, rest := p[:depth], p[depth:]
	list, ok := doc.([]any)
	if !ok && doc != nil {
		return nil, false
	}
	i := indexOf(list, rest[0], at)
	switch {
	case i < 0 && (value == nil || len(rest) > 1):
		return nil, false
	case i < 0:
		return append(slices.Clip(list), *value), true
	case value == nil && len(rest) == 1:
		return slices.Delete(slices.Clone(list), i, i+1), true
	}
	inner, ok := edit(list[i], p, depth+1, value)
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
	return Put(doc, list, slices.Concat(elements[:index], []any{element}, elements[index:]))
}
