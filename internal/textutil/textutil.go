// SPDX-License-Identifier: Apache-2.0

// Package textutil formats text for people: counts, lists, wrapped lines, and quoting for a shell.
package textutil

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Count returns n with a noun: "1 request", "2 requests". The plural must end in s; see CountAs for others.
func Count(n int, singular string) string { return CountAs(n, singular, singular+"s") }

// CountAs returns n with the singular or plural of a noun: "1 entry", "2 entries".
func CountAs(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// Join lists items in a sentence: "a", "a and b", "a, b and c".
func Join(items []string, conjunction string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " " + conjunction + " " + items[last]
}

// Clip cuts text after limit bytes, at the start of a character, and marks the cut with an ellipsis.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// FirstLine returns text up to its first newline.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// ShellQuote returns word quoted for a POSIX shell. It adds single quotes unless all characters of the word are plain.
func ShellQuote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !strings.ContainsRune(plainInShell, c) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+"

// Wrap breaks text into lines of at most width characters, each ended by a newline. The first line starts with lead,
// and the others are indented as far as lead is wide. Lead may have colours. A word that is too long for a line gets a
// line of its own. If text is empty, the result is lead and a newline.
func Wrap(lead, text string, width int) string {
	indent := utf8.RuneCountInString(colours.ReplaceAllString(lead, ""))
	var out strings.Builder
	out.WriteString(lead)
	column := indent
	for i, word := range strings.Fields(Visible(text)) {
		length := utf8.RuneCountInString(word)
		switch {
		case i > 0 && column+1+length > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		case i > 0:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += length
	}
	out.WriteByte('\n')
	return out.String()
}

// colours matches the escape sequences that colour text on a terminal.
var colours = regexp.MustCompile("\x1b\\[[0-9]*m")
