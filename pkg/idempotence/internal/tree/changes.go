// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"maps"
	"slices"
)

// A Kind says how a value changed.
type Kind string

// The kinds of changes.
const (
	Added    Kind = "added"
	Removed  Kind = "removed"
	Replaced Kind = "replaced"
	// Moved means that the elements of a list are in another order.
	Moved Kind = "moved"
)

// A Change is one difference between two documents.
type Change struct {
	Kind     Kind
	Path     Path
	Old, New any
}

// Changes returns the changes from x to y. They are in the order of member names, and in lists in the order of the
// elements of y. A value that exists only in x or only in y is one change.
func Changes(x, y any) []Change {
	var d differ
	d.value(make(Path, 0, usualDepth), x, y)
	return d.changes
}

// A differ collects the changes between two documents. add copies each path, because the methods reuse its memory.
type differ struct{ changes []Change }

func (d *differ) add(k Kind, p Path, from, to any) {
	d.changes = append(d.changes, Change{Kind: k, Path: slices.Clone(p), Old: from, New: to})
}

func (d *differ) value(p Path, x, y any) {
	if Equal(x, y) { // most parts of two versions of an object are
		return
	}
	switch from := x.(type) {
	case map[string]any:
		if to, ok := y.(map[string]any); ok {
			d.object(p, from, to)
			return
		}
	case []any:
		if to, ok := y.([]any); ok {
			d.list(p, from, to)
			return
		}
	}
	d.add(Replaced, p, x, y)
}

func (d *differ) object(p Path, x, y map[string]any) {
	names := slices.Sorted(maps.Keys(x))
	for name := range y {
		if _, ok := x[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		from, had := x[name]
		to, has := y[name]
		switch {
		case !had:
			d.add(Added, append(p, Step{Name: name}), nil, to)
		case !has:
			d.add(Removed, append(p, Step{Name: name}), from, nil)
		default:
			d.value(append(p, Step{Name: name}), from, to)
		}
	}
}

func (d *differ) list(p Path, x, y []any) {
	before, after := steps(p, x), steps(p, y)
	places := make(map[Step]int, len(x))
	for i, s := range before {
		places[s] = i
	}
	last, moved := -1, false
	kept := map[Step]bool{}
	for i, s := range after {
		at, ok := places[s]
		if !ok {
			d.add(Added, append(p, s), nil, y[i])
			continue
		}
		kept[s] = true
		moved = moved || at < last
		last = max(last, at)
		d.value(append(p, s), x[at], y[i])
	}
	for i, s := range before {
		if !kept[s] {
			d.add(Removed, append(p, s), x[i], nil)
		}
	}
	if moved {
		d.add(Moved, p, x, y)
	}
}

// steps returns the steps to the elements of a list.
func steps(p Path, list []any) []Step {
	out, seen := make([]Step, len(list)), map[string]int{}
	for i, key := range identities(p, list) {
		out[i] = Step{Key: key, Nth: seen[key], Element: true}
		seen[key]++
	}
	return out
}

// Leaves calls visit with the path and value of each scalar and of each empty object or list.
func Leaves(v any, visit func(p Path, value any)) { leaves(make(Path, 0, usualDepth), v, visit) }

func leaves(p Path, v any, visit func(Path, any)) {
	switch value := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			leaves(append(p, Step{Name: name}), value[name], visit)
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, s := range steps(p, value) {
			leaves(append(p, s), value[i], visit)
		}
		if len(value) > 0 {
			return
		}
	}
	visit(slices.Clone(p), v)
}

// Lists calls visit with the path and elements of each list.
func Lists(v any, visit func(p Path, list []any)) {
	lists(make(Path, 0, usualDepth), v, visit)
}

// usualDepth is enough for the paths in most documents, so that a walk allocates one path.
const usualDepth = 16

func lists(p Path, v any, visit func(Path, []any)) {
	switch value := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(value))
		for name, inner := range value {
			if isComposite(inner) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			lists(append(p, Step{Name: name}), value[name], visit)
		}
	case []any:
		visit(slices.Clone(p), value)
		if !slices.ContainsFunc(value, isComposite) {
			return
		}
		for i, s := range steps(p, value) {
			lists(append(p, s), value[i], visit)
		}
	}
}

func isComposite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
