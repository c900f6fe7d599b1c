// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Patterns returns patterns for exceptions that cover the changes. An element on the way becomes [*]. If the keys of
// two added or removed elements begin alike, they become one pattern, such as name=creds-*.
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
		withAnyKey(p[:last])
		if text := p.String(); !slices.Contains(patterns, text) {
			patterns = append(patterns, text)
		}
	}
	return patterns
}

// placeOf returns the path as a pattern, with * in place of the keys of elements.
func placeOf(p tree.Path) string {
	p = slices.Clone(p)
	withAnyKey(p)
	return p.String()
}

// withAnyKey replaces the keys of elements in p by *.
func withAnyKey(p tree.Path) {
	for i := range p {
		if p[i].Element {
			p[i].Key, p[i].Nth = "*", 0
		}
	}
}

// globOf returns a pattern for the key of the element at p. If changes have another element of the list whose key
// begins alike, * takes the place of the rest. Otherwise, the pattern is the key itself.
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
