// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// resolve returns the node that an alias refers to.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// A pair is a member of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs returns the members of a mapping. The members of a merge key ("<<") follow, except for those that the mapping
// itself sets.
func pairs(n *yaml.Node) (all []pair) {
	n = resolve(n)
	var merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if key.ShortTag() != "!!merge" {
			all = append(all, pair{key, value})
			continue
		}
		from := []*yaml.Node{value}
		if resolve(value).Kind == yaml.SequenceNode {
			from = resolve(value).Content
		}
		for _, source := range from {
			merged = append(merged, pairs(source)...)
		}
	}
	for _, p := range merged {
		if !slices.ContainsFunc(all, func(has pair) bool { return has.key.Value == p.key.Value }) {
			all = append(all, p)
		}
	}
	return all
}

var step = regexp.MustCompile(`\[([^\]]*)\]|[^.\[\]]+`)

// lineOf returns the line of the field with this path. If there is no such field, it returns the line of the nearest
// parent.
func lineOf(root *yaml.Node, path string) int {
	n := resolve(root)
	line := n.Line
	for _, s := range step.FindAllStringSubmatch(path, -1) {
		name := s[0]
		if s[1] != "" {
			name = s[1]
		}
		var key, value *yaml.Node
		switch n.Kind {
		case yaml.MappingNode:
			for _, p := range pairs(n) {
				if p.key.Value == name {
					key, value = p.key, p.value
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(name); err == nil && i < len(n.Content) {
				key, value = n.Content[i], n.Content[i]
			}
		}
		if key == nil {
			return line
		}
		line, n = key.Line, resolve(value)
	}
	return line
}

// Nearest returns the name that was probably meant, or an empty string if none is similar.
func Nearest(written string, names []string) (best string) {
	most := max(1, len(written)/3) // edits
	for _, name := range names {
		if edits := distance(strings.ToLower(written), strings.ToLower(name)); edits <= most {
			best, most = name, edits-1
		}
	}
	return best
}

// distance returns the number of bytes to insert, remove or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := before
			if a[i] != b[j] {
				edits = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}
