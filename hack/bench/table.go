// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// A table is printed as text or as Markdown. A row without cells separates two groups.
type table struct {
	title string
	head  []string
	left  int // number of left-aligned columns at the start
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) text(w io.Writer) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintf(w, "\n%s\n", t.title)
	for _, row := range append([][]string{t.head}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < t.left {
				line.WriteString(cell + gap + "  ")
			} else {
				line.WriteString(gap + cell + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

func (t *table) markdown(w io.Writer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	fmt.Fprintf(w, "\n%s\n\n", t.title)
	line(t.head)
	rules := make([]string, len(t.head))
	for i := range rules {
		if rules[i] = "---:"; i < t.left {
			rules[i] = "---"
		}
	}
	fmt.Fprintf(w, "|%s|\n", strings.Join(rules, "|"))
	for _, row := range t.rows {
		if len(row) > 0 {
			line(row)
		}
	}
}

func duration(ns float64) string {
	switch {
	case ns >= float64(100*time.Millisecond):
		return fmt.Sprintf("%.0f ms", ns/1e6)
	case ns >= float64(time.Millisecond):
		return fmt.Sprintf("%.2f ms", ns/1e6)
	default:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
}

func size(bytes float64) string {
	switch {
	case bytes >= 1e6:
		return fmt.Sprintf("%.2f MB", bytes/1e6)
	case bytes >= 1e3:
		return fmt.Sprintf("%.1f KB", bytes/1e3)
	default:
		return fmt.Sprintf("%.0f B", bytes)
	}
}

func times(ratio float64) string { return fmt.Sprintf("%.1fx", ratio) }

func mark(met bool) string {
	if met {
		return "✓"
	}
	return "✗"
}
