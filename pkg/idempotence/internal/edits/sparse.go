// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"maps"
	"slices"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostSparse is the maximum number of lists and maps for which Sparse returns edits.
const mostSparse = 8

// Sparse returns edits of x that leave out, empty or null the lists and maps into which a webhook writes according to
// changes: first each of them, then all together.
func Sparse(x any, changes []tree.Change) (list [][]Edit) {
	var places []place
	for _, c := range changes {
		if c.Kind == tree.Removed || c.Kind == tree.Moved {
			continue
		}
		if last := c.Path[len(c.Path)-1]; c.Kind == tree.Added && !last.Element {
			places = containers(places, c.Path, c.New)
		}
		for n := len(c.Path) - 1; n > 1 && len(places) < mostSparse; n-- {
			if above := c.Path[:n]; !above[n-1].Element && above.Last() != "containers" && above.Last() != "template" {
				value, _ := tree.Get(x, above)
				places = containers(places, above, value)
			}
		}
	}
	places = places[:min(len(places), mostSparse)]
	for _, p := range places {
		if tree.Has(x, p.path) {
			list = append(list, []Edit{{What: Remove, Path: p.path}})
		}
		list = append(list, []Edit{{What: Put, Path: p.path, Value: p.empty}}, []Edit{{What: Put, Path: p.path}})
	}
	if len(places) < 2 {
		return list
	}
	var absent, empty, null []Edit
	for _, p := range outermost(places) {
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

// A place is a list or map, with an empty value of its type.
type place struct {
	path  tree.Path
	empty any
}

// containers adds the path of a value, if it is a list or map, and those of the maps inside it.
func containers(places []place, p tree.Path, value any) []place {
	var empty any
	members, isMap := value.(Fields)
	if _, isList := value.([]any); isList {
		empty = []any{}
	} else if isMap {
		empty = Fields{}
	} else {
		return places
	}
	if !slices.ContainsFunc(places, func(other place) bool { return slices.Equal(other.path, p) }) {
		places = append(places, place{slices.Clone(p), empty})
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, isMap := members[name].(Fields); isMap {
			places = containers(places, p.Member(name), members[name])
		}
	}
	return places
}

// outermost returns the places that are not inside another one.
func outermost(places []place) (out []place) {
	for _, p := range places {
		inside := slices.ContainsFunc(places, func(other place) bool {
			return len(other.path) < len(p.path) && p.path.HasPrefix(other.path)
		})
		if !inside {
			out = append(out, p)
		}
	}
	return out
}
