// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Patterns returns the paths of changes as patterns of exceptions. An element on the way becomes [*]. The keys of two
// elements that differ only in a generated part become one pattern, such as name=creds-*.
func Patterns(changes []tree.Change) (patterns []string) {
	for _, c := range changes {
		if len(c.Path) == 0 {
			continue
		}
		p := slices.Clone(c.Path)
		last := len(p) - 1
		if p[last].Element {
			p[last].Key, p[last].Nth = globOf(p, changes), 0
		}
		for i := range p[:last] {
			if p[i].Element {
				p[i].Key, p[i].Nth = "*", 0
			}
		}
		if text := p.String(); !slices.Contains(patterns, text) {
			patterns = append(patterns, text)
		}
	}
	return patterns
}

// globOf returns a pattern for the key of an element: with * in place of the part in which it differs from an element
// that is added or removed beside it.
func globOf(p tree.Path, changes []tree.Change) string {
	last := len(p) - 1
	key := p[last].Key
	if strings.ContainsAny(key, "{[]") {
		return "*" // the whole element is the key
	}
	for _, c := range changes {
		if len(c.Path) != len(p) || !c.Path.HasPrefix(p[:last]) || !c.Path[last].Element || c.Path[last].Key == key {
			continue
		}
		if common := commonPrefix(key, c.Path[last].Key); strings.Contains(common, "=") && !strings.HasSuffix(common, "=") {
			return common + "*"
		}
	}
	return key
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
