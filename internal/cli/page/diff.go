// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/admitkit/admitkit/internal/cli/lcs"
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

// A side is one text of a Diff.
type side struct {
	Title string
	Lines []line
}

// sides returns the two texts of a Diff, or nil if they are equal.
func sides(d *Diff) []side {
	if d.Before == d.After {
		return nil
	}
	left, right := sideBySide(linesOf(d.Before), linesOf(d.After))
	return []side{{"before", left}, {"after", right}}
}

// around is the number of unchanged lines shown before and after a difference.
const around = 3

// sideBySide aligns the lines of two texts. Both results have the same length, and equal indexes form a row.
func sideBySide(before, after []string) (left, right []line) {
	pairs := lcs.Pairs(len(before), len(after), func(i, j int) bool { return before[i] == after[j] })
	i, j := 0, 0
	for _, p := range append(pairs, lcs.Pair{I: len(before), J: len(after)}) {
		l, r := changed(before[i:p.I], after[j:p.J])
		left, right = append(left, l...), append(right, r...)
		if p.I < len(before) && p.J < len(after) {
			left, right = append(left, whole(same, before[p.I])), append(right, whole(same, after[p.J]))
		}
		i, j = p.I+1, p.J+1
	}
	return folded(left), folded(right)
}

// changed aligns lines that differ. Lines with the same key share a row.
func changed(before, after []string) (left, right []line) {
	pairs := lcs.Pairs(len(before), len(after), func(i, j int) bool { return key(before[i]) == key(after[j]) })
	i, j := 0, 0
	for _, p := range append(pairs, lcs.Pair{I: len(before), J: len(after)}) {
		for ; i < p.I; i++ {
			left, right = append(left, whole(gone, before[i])), append(right, line{Kind: pad})
		}
		for ; j < p.J; j++ {
			left, right = append(left, line{Kind: pad}), append(right, whole(here, after[j]))
		}
		if i < len(before) && j < len(after) {
			l, r := words(before[i], after[j])
			left, right = append(left, line{gone, l}), append(right, line{here, r})
		}
		i, j = p.I+1, p.J+1
	}
	return left, right
}

// key returns the indentation and the field name of a line of YAML. If the line has no field name, it returns the
// indentation and at most two more characters.
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
	pairs := lcs.Pairs(len(a), len(b), func(i, j int) bool { return a[i] == b[j] })
	i, j := 0, 0
	for _, p := range append(pairs, lcs.Pair{I: len(a), J: len(b)}) {
		left = add(left, strings.Join(a[i:p.I], ""), true)
		right = add(right, strings.Join(b[j:p.J], ""), true)
		if p.I < len(a) && p.J < len(b) {
			left, right = add(left, a[p.I], false), add(right, b[p.J], false)
		}
		i, j = p.I+1, p.J+1
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

// folded replaces unchanged lines far from a difference by one line with their number. Both sides stay aligned.
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
			shown = append(shown, whole(fold, fmt.Sprintf("%d equal lines", to-from)))
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
