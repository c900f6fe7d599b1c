// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/lcs"
)

// A line is a line of a diff. Its mark is '+' (added), '-' (removed), ' ' (unchanged) or '…' (omitted lines).
type line struct {
	mark rune
	text string
}

// diff compares two objects as YAML. It shows changed lines and their parents.
func diff(before, after []byte) []line {
	return shorten(compare(yamlLines(before), yamlLines(after)))
}

// yamlLines returns an object as lines of YAML, without managedFields.
func yamlLines(object []byte) []string {
	var o map[string]any
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	if decoder.Decode(&o) != nil {
		return nil // cannot happen: the patch was applied to this object
	}
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// compare returns the diff of two texts.
func compare(before, after []string) []line {
	var all []line
	i, j := 0, 0
	same := lcs.Pairs(len(before), len(after), func(i, j int) bool { return before[i] == after[j] })
	for _, p := range append(same, lcs.Pair{I: len(before), J: len(after)}) {
		for ; i < p.I; i++ {
			all = append(all, line{'-', before[i]})
		}
		for ; j < p.J; j++ {
			all = append(all, line{'+', after[j]})
		}
		if i < len(before) && j < len(after) {
			all = append(all, line{' ', before[i]})
		}
		i, j = p.I+1, p.J+1
	}
	return all
}

// shorten omits unchanged lines, except the parents of changed lines.
func shorten(all []line) []line {
	keep := make([]bool, len(all))
	for i, l := range all {
		if l.mark == ' ' {
			continue
		}
		keep[i] = true
		depth := indent(l.text)
		for j := i - 1; j >= 0 && depth > 0; j-- {
			if d := indent(all[j].text); d < depth {
				keep[j], depth = true, d
			}
		}
	}
	var shown []line
	for i, l := range all {
		switch {
		case keep[i]:
			shown = append(shown, l)
		case len(shown) > 0 && shown[len(shown)-1].mark != '…':
			shown = append(shown, line{'…', strings.Repeat(" ", indent(l.text)/2) + "…"})
		}
	}
	if n := len(shown); n > 0 && shown[n-1].mark == '…' {
		shown = shown[:n-1]
	}
	return slices.Clip(shown)
}

// indent returns the depth of a line. An element of a list is deeper than the line that names the list.
func indent(text string) int {
	trimmed := strings.TrimLeft(text, " ")
	depth := 2 * (len(text) - len(trimmed))
	if strings.HasPrefix(trimmed, "- ") {
		depth++ // YAML indents a list element like the field of the list
	}
	return depth
}
