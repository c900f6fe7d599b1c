// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
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
		return nil // cannot happen: the patch was applied to it
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

// compare returns the diff of two texts. It removes a common beginning and end, and compares the rest by a longest common
// subsequence.
func compare(before, after []string) []line {
	var all []line
	same := func(texts []string) {
		for _, text := range texts {
			all = append(all, line{' ', text})
		}
	}
	start := 0
	for start < len(before) && start < len(after) && before[start] == after[start] {
		start++
	}
	end := 0
	for end < len(before)-start && end < len(after)-start && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	same(before[:start])
	all = append(all, middle(before[start:len(before)-end], after[start:len(after)-end])...)
	same(before[len(before)-end:])
	return all
}

func middle(before, after []string) []line {
	const maxTable = 4 << 20 // entries; for larger texts, all lines count as changed
	var all []line
	if len(before)*len(after) > maxTable {
		for _, text := range before {
			all = append(all, line{'-', text})
		}
		for _, text := range after {
			all = append(all, line{'+', text})
		}
		return all
	}
	// common[i][j] is the length of the longest common subsequence of before[i:] and after[j:].
	common := make([][]int32, len(before)+1)
	for i := range common {
		common[i] = make([]int32, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(before) || j < len(after); {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			all = append(all, line{' ', before[i]})
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			all = append(all, line{'-', before[i]})
			i++
		default:
			all = append(all, line{'+', after[j]})
			j++
		}
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
