// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"maps"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostSparse is the maximum number of lists and maps for which Sparse returns edits.
const mostSparse = 8

// Sparse returns edits of the lists and maps of x into which a webhook writes, according to changes. The edits remove
// them, empty them or set them to null: first each alone, then all together.
func Sparse(x any, changes []tree.Change) (list [][]Edit) {
	var found []collection
	for _, c := range changes {
		if c.Kind == tree.Removed || c.Kind == tree.Moved {
			continue
		}
		if last := c.Path[len(c.Path)-1]; c.Kind == tree.Added && !last.Element {
			found = withCollections(found, c.Path, c.New)
		}
		for n := len(c.Path) - 1; n > 1 && len(found) < mostSparse; n-- {
			if above := c.Path[:n]; !above[n-1].Element && above.Last() != "containers" && above.Last() != "template" {
				value, _ := tree.Get(x, above)
				found = withCollections(found, above, value)
			}
		}
	}
	found = found[:min(len(found), mostSparse)]
	for _, p := range found {
		if tree.Has(x, p.path) {
			list = append(list, []Edit{{What: Remove, Path: p.path}})
		}
		list = append(list, []Edit{{What: Put, Path: p.path, Value: p.empty}}, []Edit{{What: Put, Path: p.path}})
	}
	if len(found) < 2 {
		return list
	}
	var absent, empty, null []Edit
	for _, p := range outermost(found) {
		if tree.Has(x, p.path) {
			absent = append(absent, Edit{What: Remove, Path: p.path})
		}
		empty = append(empty, Edit{What: Put, Path: p.path, Value: p.empty})
		null = append(null, Edit{What: Put, Path: p.path})
	}
	if len(absent) > 1 {
		list = append(list, absent)
	}
	return append(list, empty, null)
}

// A collection is a list or map in an object, with an empty value of its type.
type collection struct {
	path  tree.Path
	empty any
}

// withCollections appends value, if it is a list or map, and the maps inside it. p is the path of value.
func withCollections(found []collection, p tree.Path, value any) []collection {
	var empty any
	members, isMap := value.(Fields)
	if _, isList := value.([]any); isList {
		empty = []any{}
	} else if isMap {
		empty = Fields{}
	} else {
		return found
	}
	if !slices.ContainsFunc(found, func(other collection) bool { return slices.Equal(other.path, p) }) {
		found = append(found, collection{slices.Clone(p), empty})
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, isMap := members[name].(Fields); isMap {
			found = withCollections(found, p.Member(name), members[name])
		}
	}
	return found
}

// outermost returns the collections that are not inside another one.
func outermost(found []collection) (out []collection) {
	for _, p := range found {
		inside := slices.ContainsFunc(found, func(other collection) bool {
			return len(other.path) < len(p.path) && p.path.HasPrefix(other.path)
		})
		if !inside {
			out = append(out, p)
		}
	}
	return out
}
