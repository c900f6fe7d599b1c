// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"unicode"
)

// These are the kinds of lines in a diff.
const (
	same = "same"
	gone = "gone"
	here = "new"
	pad  = "pad"  // blank line beside a line of the other side
	fold = "fold" // replaces unchanged lines
)

type line struct {
	Kind  string
	Parts []part
}

// A part is a piece of a line. It is marked if it differs from the other side.
type part struct {
	Text    string
	Changed bool
}

func whole(kind, text string) line { return line{Kind: kind, Parts: []part{{Text: text}}} }

// around is the number of unchanged lines shown before and after a difference.
const around = 3

// sideBySide aligns the lines of two texts. Both results have the same length, and equal indexes form a row.
func sideBySide(before, after []string) (left, right []line) {
	pairs := lcs(len(before), len(after), func(i, j int) bool { return before[i] == after[j] })
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(before), len(after)}) {
		l, r := changed(before[i:p.i], after[j:p.j])
		left, right = append(left, l...), append(right, r...)
		if p.i < len(before) && p.j < len(after) {
			left, right = append(left, whole(same, before[p.i])), append(right, whole(same, after[p.j]))
		}
		i, j = p.i+1, p.j+1
	}
	return folded(left), folded(right)
}

// changed aligns lines that differ. Lines with the same key share a row.
func changed(before, after []string) (left, right []line) {
	pairs := lcs(len(before), len(after), func(i, j int) bool { return key(before[i]) == key(after[j]) })
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(before), len(after)}) {
		for ; i < p.i; i++ {
			left, right = append(left, whole(gone, before[i])), append(right, line{Kind: pad})
		}
		for ; j < p.j; j++ {
			left, right = append(left, line{Kind: pad}), append(right, whole(here, after[j]))
		}
		if i < len(before) && j < len(after) {
			l, r := words(before[i], after[j])
			left, right = append(left, line{gone, l}), append(right, line{here, r})
		}
		i, j = p.i+1, p.j+1
	}
	return left, right
}

// key returns the field name in a line of YAML.
func key(line string) string {
	if i := strings.Index(line, ": "); i >= 0 {
		return line[:i+1]
	}
	if strings.HasSuffix(line, ":") {
		return line
	}
	rest := strings.TrimLeft(line, " ")
	return line[:len(line)-len(rest)] + rest[:min(2, len(rest))]
}

// words marks the words in which two lines differ.
func words(before, after string) (left, right []part) {
	a, b := tokens(before), tokens(after)
	pairs := lcs(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(a), len(b)}) {
		left = add(left, strings.Join(a[i:p.i], ""), true)
		right = add(right, strings.Join(b[j:p.j], ""), true)
		if p.i < len(a) && p.j < len(b) {
			left, right = add(left, a[p.i], false), add(right, b[p.j], false)
		}
		i, j = p.i+1, p.j+1
	}
	return left, right
}

func add(parts []part, text string, differs bool) []part {
	if last := len(parts) - 1; last >= 0 && parts[last].Changed == differs {
		parts[last].Text += text
		return parts
	}
	if text == "" {
		return parts
	}
	return append(parts, part{text, differs})
}

// tokens splits a line into words, numbers and single other characters.
func tokens(line string) (all []string) {
	word := false
	for _, c := range line {
		inWord := unicode.IsLetter(c) || unicode.IsDigit(c)
		if inWord && word {
			all[len(all)-1] += string(c)
		} else {
			all = append(all, string(c))
		}
		word = inWord
	}
	return all
}

type pair struct{ i, j int }

// lcs returns a longest common subsequence of two lists with n and m elements. For very long lists it uses only
// the common beginning and end.
func lcs(n, m int, equal func(i, j int) bool) (pairs []pair) {
	const most = 4 << 20 // cells of the table, a few hundredths of a second
	start := 0
	for start < n && start < m && equal(start, start) {
		pairs = append(pairs, pair{start, start})
		start++
	}
	end := 0
	for end < n-start && end < m-start && equal(n-1-end, m-1-end) {
		end++
	}
	rows, columns := n-start-end, m-start-end
	if rows*columns <= most {
		pairs = append(pairs, middle(start, rows, columns, equal)...)
	}
	for ; end > 0; end-- {
		pairs = append(pairs, pair{n - end, m - end})
	}
	return pairs
}

// middle computes lcs with a table of n by m lengths.
func middle(start, rows, columns int, equal func(i, j int) bool) (pairs []pair) {
	width := columns + 1
	long := make([]int32, (rows+1)*width) // lengths for the suffixes that begin at i and j
	for i := rows - 1; i >= 0; i-- {
		for j := columns - 1; j >= 0; j-- {
			if equal(start+i, start+j) {
				long[i*width+j] = long[(i+1)*width+j+1] + 1
			} else {
				long[i*width+j] = max(long[(i+1)*width+j], long[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case equal(start+i, start+j):
			pairs = append(pairs, pair{start + i, start + j})
			i, j = i+1, j+1
		case long[(i+1)*width+j] >= long[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// folded replaces unchanged lines far from a difference. Both sides stay aligned.
func folded(lines []line) (shown []line) {
	for i := 0; i < len(lines); {
		end := i
		for end < len(lines) && lines[end].Kind == same {
			end++
		}
		from, to := i+around, end-around
		if i == 0 {
			from = 0
		}
		if end == len(lines) {
			to = end
		}
		if to-from > 1 { // a fold takes one line itself
			shown = append(shown, lines[i:from]...)
			shown = append(shown, whole(fold, fmt.Sprintf("%d lines alike", to-from)))
			shown = append(shown, lines[to:end]...)
		} else {
			shown = append(shown, lines[i:end]...)
		}
		if end < len(lines) {
			shown = append(shown, lines[end])
		}
		i = end + 1
	}
	return shown
}
