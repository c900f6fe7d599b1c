// SPDX-License-Identifier: Apache-2.0

// Package shrink looks for smaller cases that fail the same law in the same way.
package shrink

import (
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/laws"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostShrinks is the maximum number of smaller cases that are checked for one finding.
const mostShrinks = 400

// Smallest looks for the smallest case that fails in the same mode as f, and returns its finding. It calls check for
// each smaller case. check returns nil if the law passes or the run is over.
func Smallest(f *laws.Finding, check func(*laws.Case) *laws.Finding) *laws.Finding {
	if f.Case.Variant == laws.NextSecond || f.Case.Variant == laws.Parallel {
		return f // each try takes a second, or may not show the failure
	}
	tries := 0
	fails := func(c laws.Case) bool {
		if tries++; tries > mostShrinks {
			return false
		}
		if smaller := check(&c); smaller != nil && smaller.Mode == f.Mode && smaller.Advice == f.Advice {
			f = smaller
			return true
		}
		return false
	}
	for again := true; again && tries < mostShrinks; {
		again = shrinkLists(&f, fails) || shrinkObject(&f, fails)
	}
	return f
}

// shrinkLists removes edits and earlier objects from the case.
func shrinkLists(f **laws.Finding, fails func(laws.Case) bool) (smaller bool) {
	for i := len((*f).Case.Edits) - 1; i >= 0; i-- {
		c := (*f).Case
		if len(c.Edits) < 2 {
			break
		}
		if c.Edits = slices.Delete(slices.Clone(c.Edits), i, i+1); fails(c) {
			smaller = true
		}
	}
	for i := len((*f).Case.Before) - 1; i >= 0; i-- {
		c := (*f).Case
		if c.Before = slices.Delete(slices.Clone(c.Before), i, i+1); len(c.Before) > 0 && fails(c) {
			smaller = true
		}
	}
	return smaller
}

// shrinkObject removes parts of the object, the largest first.
func shrinkObject(f **laws.Finding, fails func(laws.Case) bool) (smaller bool) {
	for _, p := range removable((*f).Case.Object) {
		c := (*f).Case
		doc, ok := tree.Remove(c.Object, p)
		if !ok {
			continue // removed with a larger part
		}
		if old, ok := tree.Remove(c.Old, p); ok {
			c.Old = old
		}
		if c.Object = doc; fails(c) {
			smaller = true
		}
	}
	return smaller
}

// removable returns the paths of optional parts of an object, the largest first.
func removable(doc any) (paths []tree.Path) {
	sizes := map[string]int{}
	var walk func(p tree.Path, v any)
	walk = func(p tree.Path, v any) {
		if len(p) > 0 && !(len(p) == 1 && (p[0].Name == "apiVersion" || p[0].Name == "kind")) {
			paths = append(paths, slices.Clone(p))
			sizes[p.String()] = tree.Size(v)
		}
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				walk(p.Member(name), value)
			}
		case []any:
			seen := map[string]int{}
			for _, element := range v {
				key := tree.Identity(p, element)
				walk(p.Element(key, seen[key]), element)
				seen[key]++
			}
		}
	}
	walk(nil, doc)
	slices.SortStableFunc(paths, func(a, b tree.Path) int {
		x, y := a.String(), b.String()
		if d := sizes[y] - sizes[x]; d != 0 {
			return d
		}
		if x < y {
			return -1
		}
		return 1
	})
	return paths
}
